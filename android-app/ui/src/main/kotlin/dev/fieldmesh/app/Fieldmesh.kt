package dev.fieldmesh.app

import android.app.ActivityManager
import android.app.Application
import android.hardware.camera2.CameraManager
import android.net.ConnectivityManager
import android.net.nsd.NsdManager
import android.net.wifi.WifiManager
import android.os.Build
import android.os.SystemClock
import android.provider.Settings
import dev.fieldmesh.app.screen.cueText
import dev.fieldmesh.core.agent.Admission
import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.AgentLink
import dev.fieldmesh.core.agent.Caller
import dev.fieldmesh.core.agent.Clocks
import dev.fieldmesh.core.agent.ControllerApi
import dev.fieldmesh.core.agent.Finder
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Seeker
import dev.fieldmesh.core.agent.Subnet
import dev.fieldmesh.core.agent.WiFiSink
import dev.fieldmesh.core.agent.pushWiFi
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.experiment.Experiment
import dev.fieldmesh.core.node.NodeKeeper
import dev.fieldmesh.core.node.NodeSetup
import dev.fieldmesh.core.node.NodeState
import dev.fieldmesh.core.node.OwnAgent
import dev.fieldmesh.device.Awake
import dev.fieldmesh.device.BackCamera
import dev.fieldmesh.device.LocalWifi
import dev.fieldmesh.device.LocationHost
import dev.fieldmesh.device.MicrophoneRecorder
import dev.fieldmesh.device.Need
import dev.fieldmesh.device.NodeHost
import dev.fieldmesh.device.NsdFinder
import dev.fieldmesh.device.PhoneLog
import dev.fieldmesh.device.Pictures
import dev.fieldmesh.device.Preferences
import dev.fieldmesh.device.Recorder
import dev.fieldmesh.device.RunHost
import dev.fieldmesh.device.Session
import dev.fieldmesh.device.SharedFiles
import dev.fieldmesh.device.SpokenVoice
import dev.fieldmesh.device.StreetMap
import dev.fieldmesh.device.Wording
import dev.fieldmesh.device.keystoreIdentity
import dev.fieldmesh.device.lastEnd
import dev.fieldmesh.device.signals
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.collectLatest
import kotlinx.coroutines.flow.combine
import kotlinx.coroutines.flow.distinctUntilChanged
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.receiveAsFlow
import kotlinx.coroutines.flow.update
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import java.io.File
import java.io.IOException
import java.security.GeneralSecurityException
import java.time.LocalDateTime
import java.util.Locale

/**
 * Holds what outlives every screen. A process that ended starts here again, and follows the node that it was
 * paired with.
 */
open class Fieldmesh :
    Application(),
    LocationHost,
    RunHost,
    NodeHost {
    override val nowNs: () -> Long = SystemClock::elapsedRealtimeNanos
    open val log by lazy { PhoneLog(File(filesDir, "logs")) }
    override val preferences by lazy { Preferences(this) }
    override val wording by lazy {
        wording(R.string.channel, R.string.notification_title, R.string.notification_text)
    }
    override val runWording by lazy { wording(R.string.run_channel, R.string.run_title, R.string.run_text) }

    override val nodeWording by lazy { wording(R.string.own_channel, R.string.own_title, R.string.own_text) }

    private fun wording(channel: Int, title: Int, text: Int) = Wording(
        getString(channel),
        getString(title),
        getString(text),
        getString(R.string.notification_stop),
        R.drawable.ic_mesh,
        MainActivity::class.java,
    )

    val voice by lazy {
        SpokenVoice(this, ::language, preferences::spokenCues) { cue, state ->
            cueText(cue, state, preferences.speedUnit)
        }
    }

    /** The language of the app's texts. */
    private fun language(): Locale = Locale.forLanguageTag(getString(R.string.language))

    /** For what goes on when a screen is left. */
    protected open val scope: CoroutineScope by lazy(::MainScope)
    override val session by lazy { begin(scope) }

    /** How often the screens were opened: the next trial is waited for from then on. */
    private val opened = MutableStateFlow(0)

    fun onOpened() = opened.update { it + 1 }

    private lateinit var awake: Awake
    private lateinit var caller: Caller
    override val working: StateFlow<Boolean>
        get() {
            session // a service may be started before any screen is
            return awake.isHeld
        }

    private val clocks = Clocks(nowNs, System::currentTimeMillis) {
        Settings.Global.getInt(contentResolver, Settings.Global.BOOT_COUNT, 0)
    }

    /** The phone's Wi-Fi, as long as the process lives. */
    lateinit var wifi: LocalWifi
        private set

    /** The networks that the phone's interfaces are in. */
    protected open val subnets: () -> List<Subnet> = Subnet::all

    /** Finds nodes and controllers whose addresses have changed. */
    protected open val finder: Finder by lazy {
        NsdFinder(getSystemService(NsdManager::class.java), getSystemService(WifiManager::class.java))
    }

    /** What an experimenter asked of the controller, as long as the process lives. */
    lateinit var experiment: Experiment
        private set

    /** Where Android lays out what the app may start. */
    protected open val programs get() = File(applicationInfo.nativeLibraryDir)

    /** What makes this phone a node. Its key is copied to no other phone. */
    val agent by lazy { OwnAgent(programs, File(noBackupFilesDir, "node"), cacheDir) }
    val keeper by lazy { NodeKeeper(nowNs, Dispatchers.IO) }

    /** What this phone's node is called: by its maker and model, unless a person has said otherwise. */
    val nodeName get() = preferences.nodeName ?: OwnAgent.nameOf(Build.MODEL) ?: "phone"
    private val begunAgain = MutableStateFlow(0)

    private val came = Channel<Joined>(Channel.UNLIMITED)

    /** What came of each code; the screen that is there by then tells it, once. */
    val joined: Flow<Joined> = came.receiveAsFlow()

    /** Pairs by a code, which goes on when the screen is left: what the controller has let in must not be lost here. */
    fun join(code: PairingCode) {
        scope.launch { came.send(joinBy(code)) }
    }

    private suspend fun joinBy(code: PairingCode): Joined = try {
        val fleet = knock(code)
        val came = Joined.Fleet(fleet.nodes, fleet.beyond)
        came.only?.let { pair(it.pairing) }
        preferences.nodes = fleet.nodes
        experiment.pair(fleet.controller)
        came
    } catch (e: AgentException) {
        when {
            !isForNode(e) -> Joined.Refused(e)
            agent.isPaired -> Joined.OwnIsPaired
            else -> joinAsNode(code)
        }
    }

    /** Whether a code that is none for an app may be one for this phone's node. */
    private fun isForNode(e: AgentException) =
        e is AgentException.Refused && e.error.code == "conflict" && preferences.nodeWanted

    private suspend fun joinAsNode(code: PairingCode): Joined {
        agent.join(code, Dispatchers.IO)?.let { return Joined.OwnRefused(it) }
        begunAgain.update { it + 1 } // with its keys
        followOwnNode()
        return Joined.Own(nodeName)
    }

    /** Shows the controller of a code that the app was given it; what the app is admitted to. */
    open suspend fun knock(code: PairingCode): Admission = session.join(code)

    /** Pairs the app with a node. */
    fun pair(with: Pairing) = session.pair(nearest(with))

    /** This phone's own node is called over no network: the app would lose it with the network, or its address. */
    private fun nearest(node: Pairing): Pairing = agent.pairing?.takeIf { it.pin == node.pin } ?: node

    /** Ends what a code or a person has paired the app with. */
    fun unpair() {
        session.unpair()
        preferences.nodes = emptyList()
        experiment.pair(null)
    }

    /** Pairs the app with this phone's own node. */
    fun followOwnNode() {
        agent.pairing?.let(session::pair)
    }

    /** Ends the pairing of this phone's node, and that of the app with it; an experimenter stays one. */
    fun forgetOwnNode() {
        agent.pairing?.let { if (it == session.pairing) session.unpair() }
        agent.forget()
        begunAgain.update { it + 1 }
    }

    override suspend fun beNode() = coroutineScope {
        session // which looks for Wi-Fi
        launch { keeper.state.collectLatest { if (it is NodeState.Running) tellWiFi() } }
        val radio = wifi.link.map { it?.interfaceName ?: preferences.wifiInterface }.distinctUntilChanged()
        radio.combine(begunAgain) { name, _ -> name }.collectLatest { name ->
            preferences.wifiInterface = name
            keeper.keep {
                agent.configure(NodeSetup(nodeName, name, ownPin()))
                agent.up()
            }
        }
    }

    /** Tells this phone's node what Android says of the Wi-Fi, in which the app alone can look. */
    private suspend fun tellWiFi() {
        val node = ownNode() ?: return
        getSystemService(WifiManager::class.java)?.let { pushWiFi(it.signals(nowNs), node, nowNs) }
    }

    /** This phone's node as it is called; null before it is paired. */
    protected open fun ownNode(): WiFiSink? = try {
        agent.pairing?.let(caller::client)
    } catch (_: AgentException.NoKey) {
        null // the Pair screen shows that there is no key
    }

    private fun ownPin() = try {
        identity().pin
    } catch (e: GeneralSecurityException) {
        throw IOException("the app has no key: ${e.message}", e)
    }

    /** All that works as long as the process lives, in [scope]. */
    protected fun begin(scope: CoroutineScope): Session {
        wifi = LocalWifi(getSystemService(ConnectivityManager::class.java), subnets).also(LocalWifi::start)
        val seeker = Seeker(finder) { !Seeker.mayMeasure(session.state.value.drive, nowNs()) }
        caller = Caller(::identity, Dispatchers.IO, seeker, wifi::way)
        experiment = Experiment(scope, preferences.experiment, LocalDateTime::now, SharedFiles.folder(this), seeker) {
            serving(caller, it)
        }
        preferences.pairing?.let { preferences.pairing = nearest(it) }
        val ends = getSystemService(ActivityManager::class.java)
        return Session(scope, preferences, caller, clocks, log, voice, ends::lastEnd, ::follow).also {
            it.start()
            val needed = it.state.map(::needOf).distinctUntilChanged().combine(opened) { need, _ -> need }
            val keeps = Awake(this@Fieldmesh).also { a -> awake = a }
            scope.launch { keeps.follow(needed) }
        }
    }

    private fun needOf(now: AppState) = when {
        now.drive.phase.isUnderWay && now.drive.staleSinceNs == null -> Need.TRIAL
        now.drive.phase.isUnderWay || now.next != null -> Need.NEXT_TRIAL
        else -> Need.NOTHING
    }

    /** Whether this process has asked for leave to show what its services do. */
    var asksToNotify = false

    /** Whether the location service runs, which it may do before any screen is. */
    val gpsRuns = MutableStateFlow(false)

    override fun receiving(on: Boolean) {
        if (gpsRuns.value != on) session.receiving(on)
        gpsRuns.value = on
    }

    /** What is heard of a node. */
    open fun follow(node: AgentClient): Flow<Heard> = AgentLink(node, nowNs).follow()

    /** The controller that serves experimenters at [at]. */
    protected open suspend fun serving(caller: Caller, at: Pairing): ControllerApi =
        withContext(Dispatchers.IO) { caller.controller(at) } // the key store takes its time

    /** For what would hold up the screens. */
    open val worker: CoroutineDispatcher = Dispatchers.Default

    /** For what waits for another app or a file. */
    open val reader: CoroutineDispatcher = Dispatchers.IO
    val map by lazy { StreetMap(contentResolver, preferences, reader) }
    open val pictures: Pictures by lazy { BackCamera(getSystemService(CameraManager::class.java)) }

    protected open val recorder: Recorder by lazy(::MicrophoneRecorder)

    /** Photos and recordings of marks. */
    open val attaching by lazy { attach(scope) }

    protected fun attach(scope: CoroutineScope) = Attaching(scope, worker, recorder, preferences.attachments, ::session)

    open fun identity(): Identity = keystoreIdentity()
}
