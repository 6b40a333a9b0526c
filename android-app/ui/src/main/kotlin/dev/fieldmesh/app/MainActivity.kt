package dev.fieldmesh.app

import android.Manifest
import android.app.Activity
import android.app.AlertDialog
import android.content.ActivityNotFoundException
import android.content.Intent
import android.content.IntentFilter
import android.content.pm.PackageManager
import android.hardware.display.DisplayManager
import android.location.LocationManager
import android.net.Uri
import android.os.BatteryManager
import android.os.Build
import android.os.Bundle
import android.provider.Settings
import android.view.Display
import android.view.View
import android.view.ViewGroup
import android.view.WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON
import android.widget.EditText
import android.widget.TextView
import android.widget.Toast
import dev.fieldmesh.app.screen.AttachActions
import dev.fieldmesh.app.screen.AttachRow
import dev.fieldmesh.app.screen.Battery
import dev.fieldmesh.app.screen.CampaignScreen
import dev.fieldmesh.app.screen.Choices
import dev.fieldmesh.app.screen.DriveScreen
import dev.fieldmesh.app.screen.DriveSetting
import dev.fieldmesh.app.screen.ExperimentActions
import dev.fieldmesh.app.screen.ExperimentScreen
import dev.fieldmesh.app.screen.MapActions
import dev.fieldmesh.app.screen.NodeScreen
import dev.fieldmesh.app.screen.OwnNodeActions
import dev.fieldmesh.app.screen.PairActions
import dev.fieldmesh.app.screen.PairScreen
import dev.fieldmesh.app.screen.PhoneActions
import dev.fieldmesh.app.screen.ScanScreen
import dev.fieldmesh.app.screen.Screen
import dev.fieldmesh.app.screen.SettingsScreen
import dev.fieldmesh.app.screen.TrackScreen
import dev.fieldmesh.app.screen.isRestorable
import dev.fieldmesh.app.screen.linkText
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.FleetNode
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.TrialRow
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.drive.Phase
import dev.fieldmesh.core.experiment.Fetched
import dev.fieldmesh.core.experiment.Steer
import dev.fieldmesh.core.node.NodeState
import dev.fieldmesh.core.node.OwnAgent
import dev.fieldmesh.device.LocationService
import dev.fieldmesh.device.NodeService
import dev.fieldmesh.device.RunService
import dev.fieldmesh.device.SharedFiles
import dev.fieldmesh.device.TakenPhoto
import dev.fieldmesh.device.VoiceState
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.cancel
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import java.io.File
import java.io.IOException
import java.security.GeneralSecurityException
import java.time.LocalDate

/** The screens, one at a time, and what they have in common: the link's state, and the way back. */
class MainActivity : Activity() {
    private val app get() = application as Fieldmesh
    private val scope: CoroutineScope = MainScope()
    private var showing: Job? = null
    private var looking: Job? = null
    private var tab = Tab.DRIVE
    private lateinit var screen: Screen
    private val back by lazy { Back(this) { wayBack()?.invoke() } }
    private val deciding = Deciding(this) {
        app.session.decide(it.what, it.run, it.trial, it.attempt, it.reason)
        tell(getString(R.string.decide_noted))
    }

    /** What stood beside the marks when their screen was left. */
    private var markLeft = ""
    private val markTyped: EditText? get() = findViewById(R.id.mark_text)

    /** What a first tap was of, and what takes its question back. */
    private class Asked(val of: Any, val back: Runnable)

    internal enum class Tab(val button: Int, val layout: Int) {
        EXPERIMENT(R.id.tab_experiment, R.layout.experiment),
        DRIVE(R.id.tab_drive, R.layout.drive),
        CAMPAIGN(R.id.tab_campaign, R.layout.campaign),
        TRACK(R.id.tab_track, R.layout.track),
        NODE(R.id.tab_node, R.layout.node),
        PAIR(R.id.tab_pair, R.layout.pair),
        SCAN(R.id.tab_pair, R.layout.scan), // reached from PAIR
        SETTINGS(R.id.open_settings, R.layout.settings),
    }

    override fun onCreate(saved: Bundle?) {
        super.onCreate(saved)
        setContentView(R.layout.main)
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.R) reachEdges(findViewById(R.id.root))
        for (t in Tab.entries - Tab.SCAN) findViewById<View>(t.button).setOnClickListener { open(t) }
        val restore = findViewById<TextView>(R.id.restore)
        restore.setOnClickListener { onRestore(restore) }
        val first = if (app.session.pairing == null) Tab.PAIR else Tab.DRIVE
        saved?.getString(ASKED)?.let { app.attaching.asked = it }
        markLeft = saved?.getString(MARK_LEFT).orEmpty()
        open(saved?.getString(TAB)?.let(Tab::valueOf) ?: first)
    }

    override fun onSaveInstanceState(out: Bundle) {
        super.onSaveInstanceState(out)
        out.putString(TAB, tab.name)
        out.putString(ASKED, app.attaching.asked)
        out.putString(MARK_LEFT, markTyped?.text?.toString() ?: markLeft)
        deciding.save(out)
    }

    override fun onRestoreInstanceState(saved: Bundle) {
        super.onRestoreInstanceState(saved)
        deciding.restore(saved)
    }

    override fun onStart() {
        super.onStart()
        app.onOpened()
        app.voice.tryAgain()
        // Android may have ended the process, and let the service not start again.
        if (app.preferences.gpsWanted && !app.gpsRuns.value && mayLocate()) startGps()
        if (app.preferences.nodeWanted && app.keeper.state.value == NodeState.Off) startNode()
        showing = scope.launch {
            launch { app.keeper.state.collect { show(app.session.state.value) } }
            launch { app.wifi.link.collect { show(app.session.state.value) } }
            launch { app.session.state.collect(::show) }
            launch { app.gpsRuns.collect { show(app.session.state.value) } }
            launch { app.map.open() }
            launch { app.map.state.collect { show(app.session.state.value) } }
            launch { app.joined.collect(::onJoined) }
            launch { app.experiment.watch() }
            launch { app.experiment.state.collect { show(app.session.state.value) } }
            launch { app.experiment.fetched.collect(::onFetched) }
            launch { app.session.refused.collect { tell(getString(R.string.decide_refused, it.trial)) } }
            launch { app.attaching.faults.collect(attach::failed) }
            launch { app.attaching.used.collect(attach::used) }
            launch { app.attaching.recordedS.collect { show(app.session.state.value) } }
            launch { app.preferences.attachments.waiting.collect { show(app.session.state.value) } }
            launch { app.voice.state.collect { show(app.session.state.value) } }
            launch {
                app.working.collect { works ->
                    if (works) followRun()
                    show(app.session.state.value)
                }
            }
        }
        look()
    }

    override fun onResume() {
        super.onResume()
        app.attaching.takeUp()
    }

    override fun onStop() {
        // Android gives the microphone to no app that is not seen.
        if (!isChangingConfigurations) app.attaching.endVoice()
        showing?.cancel()
        showing = null
        looking?.cancel()
        super.onStop()
    }

    /** Where back leads within the app; null where it leaves the app. */
    private fun wayBack(): (() -> Unit)? = when (tab) {
        Tab.SCAN -> {
            { open(Tab.PAIR) }
        }
        Tab.SETTINGS -> {
            { open(Tab.DRIVE) }
        }
        Tab.EXPERIMENT -> app.experiment::back.takeIf { app.experiment.state.value.isInside }
        else -> null
    }

    @Deprecated("Android 13 and later call what Back registers")
    @Suppress("DEPRECATION")
    override fun onBackPressed() = wayBack()?.invoke() ?: super.onBackPressed()

    override fun onDestroy() {
        scope.cancel()
        deciding.leave()
        super.onDestroy()
    }

    private fun open(wanted: Tab) {
        markTyped?.let { markLeft = it.text.toString() }
        tab = wanted
        screen = make(wanted, place(wanted))
        markTyped?.append(markLeft)
        show(app.session.state.value)
        look()
    }

    /** Lays a screen out instead of the former one. */
    internal fun place(wanted: Tab): View {
        val content = findViewById<ViewGroup>(R.id.content)
        content.removeAllViews()
        layoutInflater.inflate(wanted.layout, content, true)
        for (t in Tab.entries) findViewById<View>(t.button).isSelected = t.button == wanted.button
        return content.getChildAt(0)
    }

    /** Uses the camera for as long as the screen that scans is seen, and no longer. */
    private fun look() {
        looking?.cancel()
        val scanning = screen as? ScanScreen ?: return
        if (showing == null) return
        val turned = getSystemService(DisplayManager::class.java).getDisplay(Display.DEFAULT_DISPLAY).rotation
        looking = scope.launch {
            val text = scanning.look(app.pictures.shots(turned * 90), app.worker) ?: return@launch
            open(Tab.PAIR)
            (screen as PairScreen).take(text)
        }
    }

    private fun make(t: Tab, view: View): Screen = when (t) {
        Tab.EXPERIMENT -> ExperimentScreen(view, experimenting())
        Tab.DRIVE -> DriveScreen(view, driveSetting(), ::onAbort)
        Tab.CAMPAIGN -> CampaignScreen(view, app.preferences::speedUnit, ::onTrial)
        Tab.TRACK -> AttachRow(TrackScreen(view, mapping(), app.session::mark), attach)
        Tab.NODE -> NodeScreen(view, app.nowNs, System::currentTimeMillis, ::battery, phone())
        Tab.PAIR -> PairScreen(view, pairing())
        Tab.SCAN -> ScanScreen(view) { open(Tab.PAIR) }
        Tab.SETTINGS -> SettingsScreen(view, choices())
    }

    /** Shows what all screens have around them. */
    internal fun frame(state: AppState, isExperimenter: Boolean) {
        findViewById<TextView>(R.id.link).apply {
            text = linkText(state)
            setTextColor(getColor(if (state.drive.link in BROKEN) R.color.bad else R.color.text))
        }
        findViewById<View>(R.id.tab_experiment).visibility = if (isExperimenter) View.VISIBLE else View.GONE
        findViewById<View>(R.id.restore).visibility = if (state.isRestorable) View.VISIBLE else View.GONE
    }

    private fun show(state: AppState) {
        frame(state, app.experiment.state.value.isExperimenter)
        // The driver looks at it, and touches nothing; a node's Wi-Fi may sleep with the screen, and nobody would see.
        val keepsScreen = state.drive.phase.isUnderWay || ownNode.isWanted && app.working.value
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.TIRAMISU) back.take(wayBack() != null)
        window.setFlags(if (keepsScreen) FLAG_KEEP_SCREEN_ON else 0, FLAG_KEEP_SCREEN_ON)
        screen.show(state)
    }

    /** One tap; a second one where the first would end a run on the node, which only a controller takes up again. */
    private fun onRestore(button: TextView) {
        if (app.session.state.value.drive.phase != Phase.NO_RUN) {
            twice(button, R.string.restore, R.string.restore_sure, act = ::restore)
        } else {
            restore()
        }
    }

    private fun restore() {
        scope.launch {
            val report = app.session.restore()
            tell(
                when {
                    report == null -> getString(R.string.restore_failed)
                    report.failed.isEmpty() -> getString(R.string.restore_done, report.undone.size)
                    else -> getString(R.string.restore_partly, report.failed.joinToString("\n"))
                },
            )
        }
    }

    private fun onAbort(button: TextView) {
        val run = app.session.state.value.campaign?.run ?: return
        val attempt = app.session.state.value.drive.key ?: return
        twice(button, R.string.abort, R.string.abort_sure, run to attempt) {
            scope.launch {
                val isTold = app.session.abort(run, attempt, getString(R.string.abort_reason))
                if (!isTold) tell(getString(R.string.abort_failed))
            }
        }
    }

    /**
     * A first tap asks, a second one within three seconds that is of the same thing acts: no dialog, which a thumb
     * in a moving car would miss.
     */
    private fun twice(button: TextView, usual: Int, sure: Int, of: Any = Unit, act: () -> Unit) {
        val asked = button.getTag(R.id.link) as? Asked
        if (asked != null) {
            button.removeCallbacks(asked.back)
            asked.back.run()
            if (asked.of == of) return act()
        }
        val back = Runnable {
            button.setText(usual)
            button.setTag(R.id.link, null)
        }
        button.setText(sure)
        button.setTag(R.id.link, Asked(of, back))
        button.postDelayed(back, SURE_MS)
    }

    private fun onTrial(trial: TrialRow) {
        deciding.ask(app.session.state.value.campaign?.run ?: return, trial)
    }

    private fun onGps() {
        val location = getSystemService(LocationManager::class.java)
        val off = !location.isProviderEnabled(LocationManager.GPS_PROVIDER)
        if (app.gpsRuns.value) {
            app.preferences.gpsWanted = false
            stopService(LocationService.intent(this))
        } else if (off) {
            offer(R.string.gps_off, Intent(Settings.ACTION_LOCATION_SOURCE_SETTINGS))
        } else if (mayLocate()) {
            startGps()
        } else {
            val wanted =
                mutableListOf(Manifest.permission.ACCESS_FINE_LOCATION, Manifest.permission.ACCESS_COARSE_LOCATION)
            if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.TIRAMISU) wanted += Manifest.permission.POST_NOTIFICATIONS
            requestPermissions(wanted.toTypedArray(), ASK_LOCATION)
        }
    }

    override fun onRequestPermissionsResult(code: Int, names: Array<String>, results: IntArray) {
        val granted = names.filterIndexed { i, _ -> results[i] == PackageManager.PERMISSION_GRANTED }
        when (code) {
            ASK_LOCATION -> if (Manifest.permission.ACCESS_FINE_LOCATION in
                granted
            ) {
                startGps()
            } else {
                offer(R.string.gps_denied, ownSettings())
            }
            ASK_CAMERA -> if (Manifest.permission.CAMERA in
                granted
            ) {
                open(Tab.SCAN)
            } else {
                tell(getString(R.string.scan_denied))
            }
            ASK_PHOTO, ASK_VOICE -> attach.answered(code, granted.isNotEmpty())
        }
    }

    private fun mayLocate() =
        checkSelfPermission(Manifest.permission.ACCESS_FINE_LOCATION) == PackageManager.PERMISSION_GRANTED

    private fun startGps() {
        app.preferences.gpsWanted = true
        startForegroundService(LocationService.intent(this))
    }

    /** Once a process; without it the service runs, and nobody sees it. */
    private fun askToNotify() {
        if (app.asksToNotify || Build.VERSION.SDK_INT < Build.VERSION_CODES.TIRAMISU) return
        app.asksToNotify = true
        val notify = Manifest.permission.POST_NOTIFICATIONS
        if (checkSelfPermission(notify) != PackageManager.PERMISSION_GRANTED) {
            requestPermissions(arrayOf(notify), ASK_NOTIFY)
        }
    }

    private fun followRun() {
        askToNotify()
        try {
            startForegroundService(RunService.intent(this))
        } catch (_: IllegalStateException) {
            // Another app is in front by now; the next opening starts it.
        }
    }

    /** Where a permission is given that Android does not ask for any more. */
    private fun ownSettings() =
        Intent(Settings.ACTION_APPLICATION_DETAILS_SETTINGS, Uri.fromParts("package", packageName, null))

    /** Says what is missing, and leads to where it is given. */
    private fun offer(what: Int, where: Intent) {
        AlertDialog.Builder(this)
            .setMessage(what)
            .setPositiveButton(R.string.open_settings) { _, _ -> startActivity(where) }
            .setNegativeButton(R.string.not_now, null)
            .show()
    }

    private val attach = object : AttachActions {
        private fun has(feature: String) = packageManager.hasSystemFeature(feature)
        override val canPhoto get() = has(PackageManager.FEATURE_CAMERA_ANY)
        override val canRecord get() = has(PackageManager.FEATURE_MICROPHONE)
        override val recordedS get() = app.attaching.recordedS.value
        override val waiting get() = app.preferences.attachments.waiting.value

        override fun photo() = granted(Manifest.permission.CAMERA, ASK_PHOTO)

        override fun voice() = granted(Manifest.permission.RECORD_AUDIO, ASK_VOICE)

        private fun granted(permission: String, code: Int) {
            if (checkSelfPermission(permission) == PackageManager.PERMISSION_GRANTED) return answered(code, true)
            requestPermissions(arrayOf(permission), code)
        }

        fun answered(code: Int, may: Boolean) = when {
            code == ASK_VOICE && may -> app.attaching.toggleVoice(words(R.string.attach_voice))
            code == ASK_VOICE -> offer(R.string.attach_voice_denied, ownSettings())
            may -> ask()
            else -> offer(R.string.attach_camera_denied, ownSettings())
        }

        private fun ask() {
            val wanted = app.attaching.beginPhoto(words(R.string.attach_photo)) ?: return
            try {
                startActivityForResult(TakenPhoto.ask(this@MainActivity, wanted), TAKE_PHOTO)
            } catch (_: ActivityNotFoundException) {
                app.attaching.noPhoto()
                tell(getString(R.string.attach_no_camera))
            }
        }

        fun came(taken: Boolean) = if (taken) app.attaching.takePhoto() else app.attaching.noPhoto()

        /** What is typed beside the marks stays there until a note that has it has its file, too. */
        private fun words(otherwise: Int) =
            markTyped?.text?.toString().orEmpty().trim().ifEmpty { getString(otherwise) }

        fun used(words: String) {
            markTyped?.text?.run { if (trim().toString() == words) clear() }
            if (markLeft.trim() == words) markLeft = ""
        }

        fun failed(fault: AttachFault) = tell(
            getString(if (fault.isKept) R.string.attach_later else R.string.attach_failed, fault.why.message.orEmpty()),
        )
    }

    private fun experimenting() = object : ExperimentActions {
        override val experiment get() = app.experiment.state.value
        override val unit get() = app.preferences.speedUnit

        override fun choose(campaign: String?, begins: Boolean) = app.experiment.choose(campaign, begins)

        override fun scale(name: String?) = app.experiment.scale(name)

        override fun speed(mps: Double, on: Boolean) = app.experiment.speed(mps, on)

        override fun repetitions(n: Int) = app.experiment.repetitions(n)

        override fun check() = app.experiment.check()

        override fun start() = app.experiment.start()

        override fun takeBack(run: String) = app.experiment.takeBack(run)

        override fun open(run: String?) = app.experiment.open(run)

        override fun steer(run: String, how: Steer, button: TextView) = when (how) {
            Steer.END -> twice(button, R.string.exp_end, R.string.exp_end_sure, run) { app.experiment.steer(run, how) }
            Steer.START, Steer.PAUSE, Steer.RESUME -> app.experiment.steer(run, how)
        }

        override fun fetch(file: String, toOpen: Boolean) = app.experiment.fetch(file, toOpen)
    }

    /** Hands a run's file to the app that a person chooses, or has one show it. */
    private fun onFetched(came: Fetched) {
        val wanted = if (came.toOpen) SharedFiles.view(this, came.file) else SharedFiles.send(this, came.file)
        try {
            startActivity(wanted)
        } catch (_: ActivityNotFoundException) {
            tell(getString(R.string.exp_no_viewer))
        }
    }

    private fun driveSetting() = object : DriveSetting {
        override val unit get() = app.preferences.speedUnit
        override val voice get() = if (app.preferences.spokenCues) app.voice.state.value else VoiceState.READY
    }

    private fun mapping() = object : MapActions {
        override val unit get() = app.preferences.speedUnit
        override val state get() = app.map.state.value
        override var look by app.map::look
        override val worker get() = app.worker

        // Android has no media type for such a file.
        override fun choose() = try {
            startActivityForResult(
                Intent(Intent.ACTION_OPEN_DOCUMENT).addCategory(Intent.CATEGORY_OPENABLE).setType("*/*"),
                ASK_MAP,
            )
        } catch (_: ActivityNotFoundException) {
            tell(getString(R.string.map_no_chooser))
        }

        override fun remove(button: TextView) = twice(button, R.string.map_remove, R.string.map_remove_sure) {
            scope.launch { app.map.choose(null) }
        }
    }

    private fun choices() = object : Choices {
        override var unit by app.preferences::speedUnit
        override var spokenCues by app.preferences::spokenCues
        override var gpsdServer by app.preferences::gpsdServer
        override val voice get() = app.voice.state.value
    }

    override fun onActivityResult(code: Int, result: Int, data: Intent?) {
        if (code == TAKE_PHOTO) attach.came(result == RESULT_OK)
        if (result != RESULT_OK) return
        when (code) {
            ASK_LOG -> data?.data?.let { scope.launch { saveLog(it) } }
            ASK_MAP -> data?.data?.let { scope.launch { app.map.choose(it) } }
        }
    }

    private fun onJoined(came: Joined) {
        when (came) {
            is Joined.Fleet -> onFleet(came)
            is Joined.Own -> tell(getString(R.string.pair_with, came.name))
            Joined.OwnIsPaired -> tell(getString(R.string.own_is_paired))
            is Joined.OwnRefused -> tell(came.said)
            is Joined.Refused -> tell(joinText(came.by))
        }
        show(app.session.state.value)
    }

    private fun onFleet(fleet: Joined.Fleet) {
        val names = fleet.beyond.joinToString(", ")
        val only = fleet.only
        when {
            only != null -> tell(getString(R.string.pair_with, only.name))
            names.isNotEmpty() -> tell(getString(R.string.pair_beyond, names))
            fleet.nodes.isEmpty() -> tell(getString(R.string.pair_no_nodes))
        }
        if (only == null && fleet.nodes.isNotEmpty()) chooseOf(fleet.nodes)
    }

    private fun chooseOf(nodes: List<FleetNode>) {
        AlertDialog.Builder(this)
            .setTitle(R.string.pair_which)
            .setItems(nodes.map { it.name }.toTypedArray()) { _, which -> pairWith(nodes[which]) }
            .show()
    }

    private fun joinText(e: AgentException): String = when (e) {
        is AgentException.Refused -> e.error.message + (e.error.cure?.let { "\n$it" } ?: "")
        is AgentException.WrongNode -> getString(R.string.pair_other_controller)
        is AgentException.NoKey -> getString(R.string.exp_no_key, e.message.orEmpty())
        is AgentException.BadAnswer -> getString(R.string.exp_bad_answer)
        else -> getString(R.string.pair_no_controller)
    }

    private fun pairWith(node: FleetNode) {
        app.pair(node.pairing)
        tell(getString(R.string.pair_with, node.name))
        screen.show(app.session.state.value)
    }

    private val ownNode = object : OwnNodeActions {
        override val isBuilt get() = app.agent.isBuilt
        override val isWanted get() = app.preferences.nodeWanted
        override val isPaired get() = app.agent.isPaired
        override val mayFollow get() = isPaired && app.session.pairing == null
        override val hasSaid get() = app.keeper.said.isNotEmpty()
        override val name get() = app.nodeName
        override val state get() = app.keeper.state.value
        override val link get() = app.wifi.link.value
        override val isLocal get() = app.wifi.isLocal

        override fun want(name: String) {
            app.preferences.nodeName = OwnAgent.nameOf(name)
            app.preferences.nodeWanted = true
            askToNotify()
            startNode()
            show(app.session.state.value)
        }

        override fun unwant() {
            app.preferences.nodeWanted = false
            startService(NodeService.end(this@MainActivity))
            show(app.session.state.value)
        }

        override fun follow() {
            app.followOwnNode()
            show(app.session.state.value)
        }

        override fun forget(button: TextView) = twice(button, R.string.own_forget, R.string.own_forget_sure) {
            app.forgetOwnNode()
            show(app.session.state.value)
        }

        override fun share() {
            val text = Intent(Intent.ACTION_SEND).setType("text/plain")
                .putExtra(Intent.EXTRA_TEXT, app.keeper.said.joinToString("\n"))
            startActivity(Intent.createChooser(text, null))
        }
    }

    private fun startNode() {
        try {
            startForegroundService(NodeService.intent(this))
        } catch (_: IllegalStateException) {
            // Another app is in front by now; the next opening starts it.
        }
    }

    private fun phone() = object : PhoneActions {
        override val own get() = ownNode
        override val gpsRuns get() = app.gpsRuns.value
        override val logging get() = app.session.logging
        override val logFault get() = app.session.logFault
        override val logBytes get() = app.log.files.sumOf(File::length)

        override fun toggleGps() = onGps()

        override fun toggleLog() {
            app.session.logging = !logging
            if (logging && !gpsRuns) onGps() else screen.show(app.session.state.value)
        }

        override fun saveLog() {
            val name = "fieldmesh-phone-${LocalDate.now()}.ndjson"
            startActivityForResult(
                Intent(
                    Intent.ACTION_CREATE_DOCUMENT,
                ).setType("application/x-ndjson").putExtra(Intent.EXTRA_TITLE, name),
                ASK_LOG,
            )
        }
    }

    /** The logs stay on the phone until a person says that the copy is there. */
    private suspend fun saveLog(to: Uri) {
        val copied = withContext(Dispatchers.IO) {
            try {
                // "w" alone keeps what an older file of that name has beyond.
                contentResolver.openOutputStream(to, "wt")?.use(app.log::copyTo)
            } catch (_: IOException) {
                null
            }
        } ?: return tell(getString(R.string.log_unsaved))
        AlertDialog.Builder(this)
            .setMessage(R.string.log_saved)
            .setPositiveButton(R.string.log_keep, null)
            // Neutral, because that one stands apart.
            .setNeutralButton(R.string.log_delete) { _, _ ->
                app.log.delete(copied)
                screen.show(app.session.state.value)
            }
            .show()
            .getButton(AlertDialog.BUTTON_NEUTRAL).setTextColor(getColor(R.color.bad))
    }

    private fun battery(): Battery? {
        val told = registerReceiver(null, IntentFilter(Intent.ACTION_BATTERY_CHANGED)) ?: return null
        val level = told.getIntExtra(BatteryManager.EXTRA_LEVEL, -1)
        val full = told.getIntExtra(BatteryManager.EXTRA_SCALE, -1)
        if (level < 0 || full <= 0) return null
        return Battery(100 * level / full, told.getIntExtra(BatteryManager.EXTRA_TEMPERATURE, 0) / 10.0)
    }

    private fun pairing() = object : PairActions {
        override val ownPin = try {
            app.identity().pin
        } catch (_: GeneralSecurityException) {
            null // the key store is broken; the screen shows that there is no key
        }
        override val pairing get() = app.session.pairing
        override val controller get() = app.experiment.pairing
        override val nodes get() = app.preferences.nodes

        override fun pair(with: Pairing) {
            app.pair(with)
            screen.show(app.session.state.value)
        }

        override val canScan get() = packageManager.hasSystemFeature(PackageManager.FEATURE_CAMERA_ANY)

        override fun join(code: PairingCode) = app.join(code)

        override fun choose() = chooseOf(nodes)

        override fun scan() {
            if (checkSelfPermission(Manifest.permission.CAMERA) == PackageManager.PERMISSION_GRANTED) {
                open(Tab.SCAN)
            } else {
                requestPermissions(arrayOf(Manifest.permission.CAMERA), ASK_CAMERA)
            }
        }

        override fun unpair(button: TextView) {
            if (pairing != null && pairing == app.agent.pairing) {
                return twice(button, R.string.pair_undo, R.string.own_forget_sure) { unpaired(app::forgetOwnNode) }
            }
            val role = controller ?: return unpaired(app::unpair)
            twice(button, R.string.pair_undo, R.string.pair_undo_sure, role) { unpaired(app::unpair) }
        }

        private fun unpaired(unpair: () -> Unit) {
            unpair()
            screen.show(app.session.state.value)
        }
    }

    private fun tell(text: String) = Toast.makeText(this, text, Toast.LENGTH_LONG).show()

    private companion object {
        const val TAB = "tab"
        const val ASKED = "asked"
        const val MARK_LEFT = "mark_left"
        const val SURE_MS = 3000L
        const val ASK_LOCATION = 1
        const val ASK_CAMERA = 2
        const val ASK_LOG = 3
        const val ASK_NOTIFY = 4
        const val ASK_PHOTO = 5
        const val ASK_VOICE = 6
        const val TAKE_PHOTO = 7
        const val ASK_MAP = 8
        val BROKEN = setOf(LinkState.LOST, LinkState.WRONG_NODE, LinkState.NOT_PAIRED, LinkState.BAD_ANSWER)
    }
}
