package dev.fieldmesh.app

import android.app.Activity
import android.graphics.Bitmap
import android.graphics.Canvas
import android.graphics.Rect
import android.os.Looper
import android.view.View
import android.view.ViewGroup
import android.widget.Button
import android.widget.EditText
import android.widget.ListView
import android.widget.ScrollView
import android.widget.TextView
import dev.fieldmesh.app.MainActivity.Tab
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
import dev.fieldmesh.core.agent.FleetNode
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.app.Standing
import dev.fieldmesh.core.cue.Zone
import dev.fieldmesh.core.drive.Goal
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.drive.Phase
import dev.fieldmesh.core.drive.SignalSource
import dev.fieldmesh.core.drive.SpeedSource
import dev.fieldmesh.core.experiment.ControllerLink
import dev.fieldmesh.core.experiment.Hindrance
import dev.fieldmesh.core.experiment.Steer
import dev.fieldmesh.core.map.Look
import dev.fieldmesh.core.map.MapFault
import dev.fieldmesh.device.CameraException
import dev.fieldmesh.device.MapState
import dev.fieldmesh.device.VoiceState
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOf
import kotlinx.coroutines.runBlocking
import org.junit.Assume.assumeTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import java.io.File
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** As a person reads it: without what keeps a line from ending. */
internal fun String.plain() = replace('\u00A0', ' ').replace("\u2060", "")

/** A view and all that are in it; the rows of a list are not. */
internal fun View.all(): Sequence<View> = sequence {
    yield(this@all)
    if (this@all is ViewGroup && this@all !is ListView) for (i in 0 until childCount) yieldAll(getChildAt(i).all())
}

/**
 * Draws every state of every screen by the platform's own graphics, and keeps the pictures for people to look at: in
 * light, night, landscape, a large font, and German, in each unit of speed in which it differs. A screen that is longer
 * than the phone's has a second picture, of all of it. What a machine can judge of them is judged here. With
 * `-Dfieldmesh.pictures=false` nothing is kept, and what a machine cannot judge, or judges in another variant, too, is
 * left out, which takes a quarter of the time.
 */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class ScreensTest {
    private val pictures = File(System.getProperty("fieldmesh.screenshots"))
    private val keeps = System.getProperty("fieldmesh.pictures") != "false"
    private var unit = SpeedUnit.KMH
    private var scene = Scene(AppState())
    private lateinit var view: View // of the scene's screen
    private val faults = mutableListOf<String>()
    private var draws = true

    @Test
    fun light() = all("light")

    @Test
    @Config(qualifiers = "+night")
    fun night() {
        assumeTrue("only its colours are not those of light", keeps)
        all("night")
    }

    @Test
    fun largeFont() {
        RuntimeEnvironment.setFontScale(1.5f)
        all("large")
    }

    @Test
    @Config(qualifiers = "w891dp-h411dp-land-420dpi")
    fun landscape() = all("land")

    @Test
    @Config(qualifiers = "+de")
    fun german() {
        assumeTrue("a large font has the same words in less room", keeps)
        all("german", listOf(SpeedUnit.KMH))
    }

    @Test
    @Config(qualifiers = "+de")
    fun germanInALargeFont() {
        RuntimeEnvironment.setFontScale(1.5f)
        all("german-large", listOf(SpeedUnit.KMH))
    }

    @Test
    fun `every screen has states, and every state that the app knows is in one`() {
        assertEquals(Tab.entries.toSet(), States.all.keys)
        val scenes = States.all.values.flatMap { it.values }
        val drives = scenes.map { it.state.drive }
        val asks = scenes.map { it.experiment }
        every(LinkState.entries, drives.map { it.link })
        every(Phase.entries, drives.map { it.phase })
        every(Zone.entries, drives.map { it.zone })
        every(Goal.entries, drives.map { it.goTo })
        every(SpeedSource.entries, drives.map { it.speedSource })
        every(SignalSource.entries, drives.map { it.signalSource })
        every(Standing.entries, scenes.flatMap { it.state.campaign?.rows.orEmpty() }.map { it.standing })
        every(VoiceState.entries, scenes.map { it.voice })
        every(ControllerLink.entries, asks.map { it.link })
        every(Hindrance.entries, asks.map { it.hindrance })
        every(
            MapFault.entries,
            scenes.map { (it.map as? MapState.Failed)?.fault },
        )
        every(listOf("None", "Opening", "Open", "Failed"), scenes.map { it.map.javaClass.name.substringAfterLast('$') })
        every(Steer.entries, asks.flatMap { it.wishes }.map { it.steer })
        every(listOf("accepted", "rejected", "failed", "interrupted"), drives.map { it.verdict?.outcome })
        every(listOf("running", "paused", "complete", "ended", "failed"), asks.map { it.run?.phase })
        every(listOf("road", "bench", "rehearsal"), asks.map { it.run?.place })
        every(
            listOf("BadAnswer", "NoKey", "Refused", "TooOld", "Unstored"), // the link's state says the others
            asks.map { it.refused?.javaClass?.name?.substringAfterLast('$') },
        )
        every(
            listOf("Failing", "Off", "Running", "Starting", "Unpaired"),
            scenes.map { it.own.state.javaClass.name.substringAfterLast('$') },
        )
    }

    private fun every(known: List<Any>, shown: List<Any?>) = assertEquals(emptySet(), known.toSet() - shown.toSet())

    private fun all(variant: String, units: List<SpeedUnit> = SpeedUnit.entries) {
        draws = keeps || variant == "light" // what is drawn beside it, is drawn by the same code
        val controller = Robolectric.buildActivity(MainActivity::class.java).setup()
        for ((tab, scenes) in States.all) {
            for ((name, now) in scenes) {
                scene = now
                val picture = "${tab.name.lowercase()}-$name-$variant"
                view = controller.get().place(tab)
                val first = draw(controller.get(), tab, units.first(), picture, null)
                for (other in units.drop(1)) {
                    draw(controller.get(), tab, other, "$picture-${other.name.lowercase()}", first)
                }
            }
        }
        controller.pause().stop().destroy()
        assertTrue(faults.isEmpty(), faults.joinToString("\n"))
    }

    /** Notes what is wrong, so that one run tells all of it. */
    private fun expect(holds: Boolean, otherwise: String) {
        if (!holds) faults += otherwise
    }

    /** Gives what is said; what is [shown] already has no picture. */
    private fun draw(
        activity: MainActivity,
        tab: Tab,
        chosen: SpeedUnit,
        picture: String,
        shown: List<String>?,
    ): List<String> {
        unit = chosen
        val screen = screenOf(tab, view)
        screen.show(scene.state)
        scene.typed?.let { (screen as PairScreen).take(it) }
        activity.frame(scene.state, scene.experiment.isExperimenter)
        val root = activity.window.decorView
        val metrics = activity.resources.displayMetrics
        layOut(root, metrics.widthPixels, metrics.heightPixels)
        shadowOf(Looper.getMainLooper()).idle() // what was painted beside it is there
        layOut(root, metrics.widthPixels, metrics.heightPixels)
        val seen = root.all().filter { it.isShown }
        val said = seen.filterIsInstance<TextView>().map { it.text.toString().plain() }.toList()
        val told = said + seen.mapNotNull { it.contentDescription?.toString() }
        if (told == shown) return told
        save(root, picture)
        checkTouch(activity, picture)
        checkSpoken(activity, picture)
        checkText(activity, picture)
        checkWords(tab, told, picture)
        if (tab == Tab.DRIVE) checkGlance(activity, picture)
        for (words in wordsOf[picture].orEmpty()) expect(words in told, "$picture: no \"$words\" in $told")
        val below = root.all().maxOf(::below)
        if (below > 0) {
            layOut(root, metrics.widthPixels, metrics.heightPixels + below)
            save(root, "$picture-whole")
        }
        checkWhole(root, picture)
        checkDanger(activity, picture)
        return told
    }

    private fun layOut(root: View, width: Int, height: Int) {
        root.measure(
            View.MeasureSpec.makeMeasureSpec(width, View.MeasureSpec.EXACTLY),
            View.MeasureSpec.makeMeasureSpec(height, View.MeasureSpec.EXACTLY),
        )
        root.layout(0, 0, width, height)
        root.jumpDrawablesToCurrentState() // what is checked is so without its animation
    }

    /** How much of what a view scrolls is not seen, in pixels. */
    private fun below(view: View): Int = when (view) {
        is ScrollView -> view.getChildAt(0).height - view.height
        is ListView -> (0 until view.count).sumOf { i ->
            val row = view.adapter.getView(i, null, view)
            row.measure(
                View.MeasureSpec.makeMeasureSpec(view.width, View.MeasureSpec.EXACTLY),
                View.MeasureSpec.UNSPECIFIED,
            )
            row.measuredHeight
        } - view.height
        else -> 0
    }

    private fun save(root: View, picture: String) {
        if (!draws) return
        val bitmap = Bitmap.createBitmap(root.width / 2, root.height / 2, Bitmap.Config.ARGB_8888)
        root.draw(Canvas(bitmap).apply { scale(0.5f, 0.5f) })
        if (keeps) {
            pictures.mkdirs()
            File(pictures, "$picture.png").outputStream().use {
                assertTrue(bitmap.compress(Bitmap.CompressFormat.PNG, 100, it))
            }
        }
        bitmap.recycle()
    }

    /** Whoever scrolls sees all: nothing is cut by its frame, or beside the screen. */
    private fun checkWhole(root: View, picture: String) {
        for (v in root.all().filter { it !is ViewGroup && it.isShown && it.width > 0 && it.height > 0 }) {
            expect(isWhole(v), "$picture: $v is cut")
            if (v is TextView && v.layout != null) {
                val high = v.layout.height + v.totalPaddingTop + v.totalPaddingBottom
                expect(high <= v.height + 1, "$picture: \"${v.text}\" is $high high in ${v.height}")
            }
        }
    }

    private fun isWhole(v: View): Boolean {
        val at = Rect(0, 0, v.width, v.height)
        var inner = v
        return generateSequence { (inner.parent as? ViewGroup)?.also { at.offset(inner.left, inner.top - it.scrollY) } }
            .onEach { inner = it }
            .all { Rect(0, 0, it.width, it.height).contains(at) }
    }

    /** What ends or deletes something is not beside what is touched often. */
    private fun checkDanger(activity: Activity, picture: String) {
        val buttons = activity.window.decorView.all().filter { it is Button && it.isShown && it.width > 0 }
        val (dangers, others) = buttons.partition { (it as Button).currentTextColor == activity.getColor(R.color.bad) }
        val least = (16 * activity.resources.displayMetrics.density).toInt() - 1
        for (danger in dangers) {
            val around = bounds(danger).apply { inset(-least, -least) }
            for (other in others) {
                expect(!Rect.intersects(around, bounds(other)), "$picture: $danger is beside $other")
            }
        }
    }

    private fun bounds(v: View) = IntArray(2).also(v::getLocationInWindow).let { (x, y) ->
        Rect(x, y, x + v.width, y + v.height)
    }

    /** Speeds are in one unit, and what a schema names is said in words. */
    private fun checkWords(tab: Tab, told: List<String>, picture: String) {
        val others = UNITS.filterKeys { it != unit && tab != Tab.SETTINGS }.values
        for (words in told) {
            for (other in others) expect(!other.containsMatchIn(words), "$picture: another unit in \"$words\"")
            val raw = IDENTIFIER.findAll(words).map { it.value }.filter { it !in KEYS }.toList()
            expect(raw.isEmpty(), "$picture: $raw in \"$words\"")
        }
    }

    /** What the picture of a state says among other things. */
    private val wordsOf = mapOf(
        "experiment-unready-light" to listOf(
            "1 need is not met:",
            "bravo, radio: there is no interface wlan0",
            "Fix each item above, then check again.",
        ),
        "experiment-chosen-light" to listOf("4 trials, about 7 min, on 0.6 km of road", "Check all nodes first."),
        "experiment-outdated-light" to
            listOf("Nothing was in the way, more than 10 minutes ago.", "Check all nodes first."),
        "experiment-complete-light" to listOf("60.1 km/h", "9.1 Mbit/s, 4 results", "Open the report"),
        "experiment-lost-light" to listOf(
            "The controller 192.168.50.2:7448 does not answer. Check whether fieldmesh serve is running on it, and " +
                "whether this phone is on its network.",
        ),
        "experiment-list-light" to
            listOf("bravo is out of reach: it goes on by itself. Go near, and put the nodes back."),
        "experiment-slow-light" to listOf("41.5 kbit/s, 1 result"),
        "experiment-ranges-light" to listOf("Range test"),
        "experiment-places-light" to listOf(
            "Something came through up to 187 m away.",
            "0 to 20 m, 14 s",
            "18.4 Mbit/s, 0.0 % lost, -48 dBm, 20.2 km/h",
            "0.0 Mbit/s, 100.0 % lost, no signal known, 40.0 km/h",
            "no throughput known, no loss known, no signal known, no speed known",
        ),
        "experiment-nowhere-light" to
            listOf("The distance is not known: it needs GPS fixes of both nodes."),
        "experiment-full-light" to
            listOf("There is no room on this phone for the file. Free some, then fetch it again."),
        "experiment-complete-light-mph" to listOf("6.3 mph"),
        "experiment-chosen-light-mps" to listOf(
            "Differs from the full campaign: Chosen by the experimenter: the speeds are 2.8, 16.7 m/s instead of " +
                "2.8, 5.6, 8.3, 11.1, 13.9, 16.7 m/s; the repetitions are 1 instead of 2.",
        ),
        "experiment-nearly-light" to listOf(
            "velocity, on the bench\nunder way, 23 of 24 trials accepted, about 1 min left",
        ),
        "campaign-some-light" to listOf("Now: 5\nsection A, speed 10.1 km/h"),
        "campaign-stopped-light" to listOf("Next: 1\nsection A, speed 10.1 km/h"),
        "campaign-ended-light" to listOf(
            "0 of 24 accepted",
            "The run was paused or ended, or needs no more trials here. " +
                "Nothing more is driven until a controller resumes it.",
        ),
        "campaign-alone-light" to listOf("1 of 24 accepted, 1 not final yet"),
        "drive-done-alone-light" to listOf("Accepted by the node alone: the controller has not judged it yet."),
        "drive-bad-answer-light" to listOf("Use an app and an agent of the same version."),
        "pair-choosing-light" to listOf("Which node is with this phone?"),
        "campaign-done-light" to listOf("24 of 24 accepted", "Nothing is left to drive."),
        "track-none-light" to listOf(
            "Start this phone’s GPS on the Node screen: the route is drawn from then on.",
        ),
        "track-map-light" to listOf("© Nobody & contributors made up", "Remove the map"),
        "track-map-opening-light" to listOf("Opening the map…", "Remove the map"),
        "track-map-elsewhere-light" to listOf(
            "© Nobody & contributors made up",
            "The map has nothing here. It covers latitude 52.49 to 52.51, longitude " +
                "13.39 to 13.41.",
        ),
        "track-map-damaged-tile-light" to listOf(
            "The map’s file is damaged. “pmtiles verify” may say more; copy it to this phone again.",
        ),
        "track-recording-light" to listOf(
            "Stop, 47 s",
            "2 photos and recordings wait: they are delivered between trials.",
        ),
        "drive-armed-too-slow-light" to listOf("faster: 33.1 of 50.0 km/h"),
        "drive-running-light" to listOf("Signal, last 30 s: -55 dBm"),
        "drive-running-phone-light" to listOf("Access point by Android, last 30 s: -48 dBm"),
        "drive-rejected-light" to listOf("The speed was not held.\nIn band: 62 %, limit 80 %"),
        "drive-no-fix-light" to listOf("No GPS"),
        "drive-to-start-light" to listOf("To the start", "too late: drive back to the start, 430 m from here"),
        "drive-to-mark-light" to listOf("To the mark"),
        "drive-stopped-light" to listOf(
            "Run stopped",
            "The run was paused or ended, or needs no more trials here. " +
                "Nothing more is driven until a controller resumes it.",
        ),
        "drive-held-off-light" to listOf("waiting for a controller: the run has ended at node bravo"),
        "drive-node-slow-light" to listOf("Node lost"),
        "node-rough-light" to listOf(
            "3-D, 0.0 s old, 10 Hz\nThe receiver does not tell how accurate its speed is; the report assumes a usual " +
                "accuracy.",
        ),
        "node-gps-refused-light" to listOf(
            "3-D, 0.0 s old, 10 Hz\nThis phone’s GPS is not used: this node is where van says, and follows nobody " +
                "else: driver may be elsewhere\nhave only the phone that travels with this node give it its GPS",
        ),
        "node-beside-light" to listOf("mesh0 is made beside wlan0 for a run"),
        "node-old-light" to listOf(
            "Nothing is in the way of a trial.\nAs of 40 s ago",
            "3-D, 40.0 s old, 10 Hz",
            "agrees with this phone’s",
        ),
    )

    /** The speed is the largest, and what the node waits for or has found is seen without scrolling. */
    private fun checkGlance(activity: Activity, picture: String) {
        val speed = activity.findViewById<TextView>(R.id.speed)
        val others = activity.window.decorView.all().filterIsInstance<TextView>() - speed
        expect(others.all { it.textSize < speed.textSize }, picture)
        val detail = activity.findViewById<View>(R.id.detail)
        if (!detail.isShown) return
        val seen = Rect()
        expect(detail.getGlobalVisibleRect(seen), "$picture: the detail is below the fold")
        expect(
            seen.height() == detail.height,
            "$picture: the detail is cut at ${seen.height()} of ${detail.height}",
        )
    }

    /** What can be touched is at least 48 dp high and wide (Android's guideline for accessibility). */
    private fun checkTouch(activity: Activity, picture: String) {
        val least = 48 * activity.resources.displayMetrics.density - 1
        for (v in activity.window.decorView.all().filter { it.isClickable && it.isShown && it.width > 0 }) {
            if (v is TextView && v.isTextSelectable) continue
            expect(
                v.height >= least && v.width >= least,
                "$picture: $v is ${v.width} by ${v.height} pixels, least is $least",
            )
        }
    }

    /** A screen reader has words for all that is seen, and headings to go by. */
    private fun checkSpoken(activity: Activity, picture: String) {
        val seen = activity.window.decorView.all().filter { it !is ViewGroup && it.isShown && it.width > 0 }
        for (v in seen.filter { it.importantForAccessibility != View.IMPORTANT_FOR_ACCESSIBILITY_NO }) {
            if (v.javaClass == View::class.java) continue // a rule between two parts
            val words = v.contentDescription ?: (v as? TextView)?.run { text.ifEmpty { hint } }
            val isBlank = v is TextView && !v.isClickable // a row that has nothing to say now
            expect(!words.isNullOrBlank() || isBlank, "$picture: $v has no words")
        }
        for (id in HEADINGS) {
            val v = activity.findViewById<View>(id) ?: continue
            expect(v.isAccessibilityHeading, "$picture: $v is no heading")
        }
    }

    /** No word on a button or in the great field is cut off. */
    private fun checkText(activity: Activity, picture: String) {
        for (v in activity.window.decorView.all().filterIsInstance<TextView>().filter {
            it.isShown &&
                it.text.isNotEmpty()
        }) {
            val layout = v.layout ?: continue
            for (line in 0 until layout.lineCount) {
                expect(layout.getEllipsisCount(line) == 0, "$picture: ${v.text} is cut")
            }
            for (line in 1 until layout.lineCount) checkBreak(v, layout.getLineEnd(line - 1), picture)
            val room = v.width - v.totalPaddingLeft - v.totalPaddingRight
            expect(
                (0 until layout.lineCount).all {
                    layout.getLineWidth(it) <= room + 1
                } ||
                    v.maxLines != 1,
                "$picture: \"${v.text}\" needs more than $room pixels",
            )
        }
    }

    /** A line ends between words, and not between a number and its unit. */
    private fun checkBreak(v: TextView, at: Int, picture: String) {
        if (v is EditText || v.isTextSelectable) return
        val before = v.text.take(at).takeLastWhile { !it.isWhitespace() }
        val after = v.text.drop(at).takeWhile { !it.isWhitespace() }
        val isLong = before.length + after.length > 24
        expect(before.isEmpty() || before.endsWith("-") || isLong, "$picture: \"$before\" is broken before \"$after\"")
        val number = v.text.take(at).trimEnd().takeLastWhile { !it.isWhitespace() }
        val isParted = number.lastOrNull()?.isDigit() == true && after.trimEnd(',', '.', ':') in PARTED
        expect(!isParted, "$picture: \"$number\" is parted from \"$after\"")
    }

    private fun screenOf(tab: Tab, view: View): Screen = when (tab) {
        Tab.EXPERIMENT -> ExperimentScreen(view, Experimenting())
        Tab.DRIVE -> DriveScreen(view, Setting()) {}
        Tab.NODE -> NodeScreen(view, { 0 }, { 1767225600123 }, { Battery(83, 31.0) }, Phone())
        Tab.CAMPAIGN -> CampaignScreen(view, { unit }) {}
        Tab.TRACK -> AttachRow(TrackScreen(view, Mapped()) {}, attach)
        Tab.PAIR -> PairScreen(view, Paired(scene.experiment.controller, scene.nodes))
        Tab.SCAN -> scanning(view, scene.state.node != null)
        Tab.SETTINGS -> SettingsScreen(view, Setting())
    }

    private val attach = object : AttachActions {
        override val canPhoto = true
        override val canRecord = true
        override val recordedS get() = scene.recordedS
        override val waiting get() = scene.waiting

        override fun photo() = Unit

        override fun voice() = Unit
    }

    /** With a picture in portrait of a sensor that lies on its side, or with a camera that fails. */
    private fun scanning(view: View, works: Boolean) = ScanScreen(view) {}.also { screen ->
        runBlocking {
            screen.look(
                if (works) {
                    flowOf(shotOf("another code", turnDeg = 90))
                } else {
                    flow {
                        throw CameraException(null)
                    }
                },
                Dispatchers.Unconfined,
            )
        }
    }

    private inner class Setting :
        DriveSetting,
        Choices {
        override var unit = this@ScreensTest.unit
        override var spokenCues = true
        override var gpsdServer = false
        override val voice = scene.voice
    }

    private inner class Experimenting : ExperimentActions {
        override val experiment = scene.experiment
        override val unit = this@ScreensTest.unit

        override fun choose(campaign: String?, begins: Boolean) = Unit

        override fun scale(name: String?) = Unit

        override fun speed(mps: Double, on: Boolean) = Unit

        override fun repetitions(n: Int) = Unit

        override fun check() = Unit

        override fun start() = Unit

        override fun takeBack(run: String) = Unit

        override fun open(run: String?) = Unit

        override fun steer(run: String, how: Steer, button: TextView) = Unit

        override fun fetch(file: String, toOpen: Boolean) = Unit
    }

    private inner class Mapped : MapActions {
        override val unit = this@ScreensTest.unit
        override val state = scene.map
        override var look: Look? = null
        override val worker = Dispatchers.Unconfined

        override fun choose() = Unit

        override fun remove(button: TextView) = Unit
    }

    private class Paired(override val controller: Pairing?, nodes: Int) : PairActions {
        override val ownPin = Pin("0123456789abcdef".repeat(4))
        override val pairing = controller?.let { Pairing("192.168.50.11", 7443, Pin("ab".repeat(32))) }
        override val canScan = true
        override val nodes = List(nodes) { FleetNode("node-$it", Pairing("192.168.50.11", 7443, ownPin)) }

        override fun choose() = Unit

        override fun pair(with: Pairing) = Unit

        override fun join(code: PairingCode) = Unit

        override fun scan() = Unit

        override fun unpair(button: TextView) = Unit
    }

    private inner class Phone : PhoneActions {
        override val own = object : OwnNodeActions {
            override val isBuilt = scene.own.isBuilt
            override val isWanted = scene.own.isWanted
            override val isPaired = scene.own.isPaired
            override val mayFollow = scene.own.mayFollow
            override val hasSaid = scene.own.hasSaid
            override val name = "pixel-7"
            override val state = scene.own.state
            override val link = scene.own.link
            override val isLocal = scene.own.isLocal

            override fun want(name: String) = Unit

            override fun unwant() = Unit

            override fun follow() = Unit

            override fun forget(button: TextView) = Unit

            override fun share() = Unit
        }
        override val gpsRuns = scene.gpsRuns
        override val logging = scene.gpsRuns
        override val logFault = scene.logFault
        override val logBytes = scene.logBytes

        override fun toggleGps() = Unit

        override fun toggleLog() = Unit

        override fun saveLog() = Unit
    }

    private companion object {
        val UNITS = mapOf(
            SpeedUnit.KMH to Regex("""\bkm/h"""),
            SpeedUnit.MPH to Regex("""\bmph\b"""),
            SpeedUnit.MPS to Regex("""(?<!k)m/s\b"""),
        )
        val PARTED = setOf("km/h", "mph", "m/s", "Mbit/s", "kbit/s", "dBm", "%", "ms", "s", "m")
        val IDENTIFIER = Regex("""\b[a-z]+(?:_[a-z]+)+\b""")

        val HEADINGS = listOf(
            R.id.campaigns_title,
            R.id.runs_title,
            R.id.run_name,
            R.id.results_title,
            R.id.places_title,
            R.id.ready,
        )

        /** What a person types into the campaign. */
        val KEYS = setOf("mesh_address")
    }
}
