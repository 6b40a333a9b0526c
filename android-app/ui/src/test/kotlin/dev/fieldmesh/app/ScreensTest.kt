package dev.fieldmesh.app

import android.app.Activity
import android.graphics.Bitmap
import android.graphics.Canvas
import android.graphics.Rect
import android.view.View
import android.view.ViewGroup
import android.widget.ListView
import android.widget.TextView
import dev.fieldmesh.app.screen.Battery
import dev.fieldmesh.app.screen.CampaignScreen
import dev.fieldmesh.app.screen.Choices
import dev.fieldmesh.app.screen.DriveScreen
import dev.fieldmesh.app.screen.DriveSetting
import dev.fieldmesh.app.screen.ExperimentActions
import dev.fieldmesh.app.screen.ExperimentScreen
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
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.experiment.ExperimentState
import dev.fieldmesh.core.experiment.Steer
import dev.fieldmesh.core.node.NodeState
import dev.fieldmesh.device.CameraException
import dev.fieldmesh.device.VoiceState
import dev.fieldmesh.device.WifiLink
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOf
import kotlinx.coroutines.runBlocking
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.annotation.Config
import java.io.File
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/**
 * Draws every screen in every state by the platform's own graphics and keeps
 * the pictures for people to look at, in light, night, a large font and
 * landscape; what a machine can judge of them is judged here.
 */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class ScreensTest {
    private val pictures = File(System.getProperty("fieldmesh.screenshots"))

    @Test
    fun light() = all("light")

    @Test
    @Config(qualifiers = "+night")
    fun night() = all("night")

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
    fun german() = all("german")

    @Test
    fun milesPerHour() = speeds(SpeedUnit.MPH, "mph")

    @Test
    fun metresPerSecond() = speeds(SpeedUnit.MPS, "mps")

    private fun speeds(chosen: SpeedUnit, variant: String) {
        unit = chosen
        all(variant, listOf("drive", "campaign", "experiment"))
    }

    private var unit = SpeedUnit.KMH
    private var experiment = ExperimentState()

    private fun all(variant: String, names: Collection<String> = screens().keys) {
        for ((name, make) in screens().filterKeys(names::contains)) {
            for ((state, value) in states(name).filterKeys {
                name != "experiment" || variant !in UNITS || it in SPEEDS
            }) {
                experiment = experiments[state] ?: ExperimentState(SOMEWHERE.takeIf { state != "unpaired" })
                draw("$name-$state-$variant", name, make, value)
            }
        }
    }

    private fun states(screen: String): Map<String, AppState> = when (screen) {
        "experiment" -> States.experiment
        "drive" -> States.drive
        "node" -> States.node
        "campaign" -> States.campaign
        "track" -> States.track
        "scan" -> States.scan
        "settings" -> States.settings
        else -> States.pair
    }

    private fun draw(picture: String, name: String, make: (View, AppState) -> Screen, state: AppState) {
        val controller = Robolectric.buildActivity(MainActivity::class.java).setup()
        val activity = controller.get()
        val content = activity.findViewById<ViewGroup>(R.id.content)
        content.removeAllViews()
        activity.layoutInflater.inflate(
            activity.resources.getIdentifier(name, "layout", activity.packageName),
            content,
            true,
        )
        activity.findViewById<TextView>(R.id.link).text = activity.linkText(state)
        activity.findViewById<View>(R.id.restore).visibility = if (state.isRestorable) View.VISIBLE else View.GONE
        activity.findViewById<View>(R.id.tab_experiment).visibility =
            if (experiment.isExperimenter) View.VISIBLE else View.GONE
        for (tab in listOf("experiment", "drive", "campaign", "track", "node", "pair")) {
            val button = activity.resources.getIdentifier("tab_$tab", "id", activity.packageName)
            activity.findViewById<View>(button).isSelected = tab == name.replace("scan", "pair")
        }
        make(content.getChildAt(0), state).show(state)
        save(activity, picture)
        checkTouch(activity, picture)
        checkText(activity, picture)
        if (name == "drive") checkGlance(activity, picture)
        val told = content.all().filterIsInstance<TextView>().map { it.text.toString() }.toList()
        for (words in wordsOf[picture].orEmpty()) assertTrue(words in told, "$picture: no \"$words\" in $told")
        controller.pause().stop().destroy()
    }

    /** What the picture of a state says among other things. */
    private val wordsOf = mapOf(
        "experiment-unready-light" to listOf(
            "1 need is not met:",
            "bravo, radio: there is no interface wlan0",
            "Fix each item above, then check again.",
        ),
        "experiment-chosen-light" to listOf("4 trials, about 7 min, 1.5 km of driving", "Check all nodes first."),
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
        "experiment-complete-mph" to listOf("6.3 mph"),
        "drive-no-fix-light" to listOf("No GPS"),
        "drive-node-slow-light" to listOf("Node lost"),
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
        assertTrue(others.all { it.textSize < speed.textSize }, picture)
        val detail = activity.findViewById<View>(R.id.detail)
        if (!detail.isShown) return
        val seen = Rect()
        assertTrue(detail.getGlobalVisibleRect(seen), "$picture: the detail is below the fold")
        assertTrue(
            seen.height() == detail.height,
            "$picture: the detail is cut at ${seen.height()} of ${detail.height}",
        )
    }

    private fun save(activity: Activity, picture: String) {
        val root = activity.window.decorView
        val metrics = activity.resources.displayMetrics
        root.measure(
            View.MeasureSpec.makeMeasureSpec(metrics.widthPixels, View.MeasureSpec.EXACTLY),
            View.MeasureSpec.makeMeasureSpec(metrics.heightPixels, View.MeasureSpec.EXACTLY),
        )
        root.layout(0, 0, metrics.widthPixels, metrics.heightPixels)
        root.jumpDrawablesToCurrentState() // what is checked is so without its animation
        val bitmap = Bitmap.createBitmap(metrics.widthPixels, metrics.heightPixels, Bitmap.Config.ARGB_8888)
        root.draw(Canvas(bitmap))
        pictures.mkdirs()
        File(pictures, "$picture.png").outputStream().use {
            assertTrue(bitmap.compress(Bitmap.CompressFormat.PNG, 100, it))
        }
        bitmap.recycle()
    }

    /** What can be touched is at least 48 dp high and wide (Android's guideline for accessibility). */
    private fun checkTouch(activity: Activity, picture: String) {
        val least = 48 * activity.resources.displayMetrics.density - 1
        for (v in activity.window.decorView.all().filter { it.isClickable && it.isShown && it.width > 0 }) {
            if (v is TextView && v.isTextSelectable) continue
            assertTrue(
                v.height >= least && v.width >= least,
                "$picture: $v is ${v.width} by ${v.height} pixels, least is $least",
            )
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
                assertEquals(
                    0,
                    layout.getEllipsisCount(line),
                    "$picture: ${v.text} is cut",
                )
            }
            val room = v.width - v.totalPaddingLeft - v.totalPaddingRight
            assertTrue(
                (0 until layout.lineCount).all {
                    layout.getLineWidth(it) <= room + 1
                } ||
                    v.maxLines != 1,
                "$picture: \"${v.text}\" needs more than $room pixels",
            )
        }
    }

    private fun View.all(): Sequence<View> = sequence {
        yield(this@all)
        if (this@all is ViewGroup && this@all !is ListView) for (i in 0 until childCount) yieldAll(getChildAt(i).all())
    }

    private fun screens(): Map<String, (View, AppState) -> Screen> = mapOf(
        "experiment" to { view, _ -> ExperimentScreen(view, Experimenting()) },
        "drive" to { view, state -> DriveScreen(view, Setting(state.node == null)) {} },
        "node" to { view, _ -> NodeScreen(view, { 0 }, { 1767225600123 }, { Battery(83, 31.0) }, Phone) },
        "campaign" to { view, _ -> CampaignScreen(view, { unit }) {} },
        "track" to { view, _ -> TrackScreen(view) {} },
        "pair" to { view, state -> PairScreen(view, Paired(state.node != null)) },
        "scan" to { view, state -> scanning(view, state.node != null) },
        "settings" to { view, state -> SettingsScreen(view, Setting(state.node == null)) },
    )

    private companion object {
        val SOMEWHERE = Pairing("192.168.50.2", 7448, Pin("cd".repeat(32)))
        val UNITS = setOf("mph", "mps")

        /** The states of the screen for campaigns that show speeds. */
        val SPEEDS = setOf("chosen", "complete")
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

    private inner class Setting(mute: Boolean) :
        DriveSetting,
        Choices {
        override var unit = this@ScreensTest.unit
        override var spokenCues = true
        override var gpsdServer = false
        override val voice = if (mute) VoiceState.NO_ENGINE else VoiceState.READY
    }

    private inner class Experimenting : ExperimentActions {
        override val experiment = this@ScreensTest.experiment
        override val unit = this@ScreensTest.unit

        override fun choose(campaign: String?, begins: Boolean) = Unit

        override fun scale(name: String?) = Unit

        override fun speed(mps: Double, on: Boolean) = Unit

        override fun repetitions(n: Int) = Unit

        override fun check() = Unit

        override fun start() = Unit

        override fun takeBack() = Unit

        override fun open(run: String?) = Unit

        override fun steer(run: String, how: Steer, button: TextView) = Unit

        override fun fetch(file: String, toOpen: Boolean) = Unit
    }

    private class Paired(yes: Boolean) : PairActions {
        override val ownPin = Pin("0123456789abcdef".repeat(4))
        override val pairing = if (yes) Pairing("192.168.50.11", 7443, Pin("ab".repeat(32))) else null
        override val controller = SOMEWHERE.takeIf { yes }
        override val canScan = true

        override fun pair(with: Pairing) = Unit

        override fun join(code: PairingCode) = Unit

        override fun scan() = Unit

        override fun unpair(button: TextView) = Unit
    }

    private object Phone : PhoneActions {
        override val own = object : OwnNodeActions {
            override val isBuilt = true
            override val isWanted = true
            override val isPaired = true
            override val mayFollow = true
            override val hasSaid = true
            override val name = "pixel-7"
            override val state = NodeState.Running(-180_000_000_000)
            override val link = WifiLink("wlan0", "192.168.43.5/24")
            override val isLocal = true

            override fun want(name: String) = Unit

            override fun unwant() = Unit

            override fun follow() = Unit

            override fun forget(button: TextView) = Unit

            override fun share() = Unit
        }
        override val gpsRuns = false
        override val logging = true
        override val logFault = "No space left on device"
        override val logBytes = 1_234_567L

        override fun toggleGps() = Unit

        override fun toggleLog() = Unit

        override fun saveLog() = Unit
    }
}
