package dev.fieldmesh.app

import android.content.Intent
import android.graphics.Rect
import android.net.Uri
import android.view.View
import android.view.ViewGroup
import android.widget.CheckBox
import android.widget.EditText
import android.widget.TextView
import dev.fieldmesh.core.agent.Admission
import dev.fieldmesh.core.agent.FleetNode
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.experiment.Kept
import dev.fieldmesh.core.experiment.Steer
import dev.fieldmesh.core.experiment.Wish
import dev.fieldmesh.core.sampleRun
import dev.fieldmesh.core.wire.Choice
import dev.fieldmesh.core.wire.Need
import dev.fieldmesh.core.wire.Places
import dev.fieldmesh.core.wire.Spot
import dev.fieldmesh.core.wire.Stretch
import dev.fieldmesh.core.wire.WireJson
import dev.fieldmesh.device.SharedFiles
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.android.controller.ActivityController
import org.robolectric.annotation.Config
import java.io.File
import java.io.FileNotFoundException
import java.time.Duration
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** A whole campaign from the phone, by its screens; the controller is the tests'. */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class ExperimentTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp
    private val controller get() = app.serving
    private val at = Pairing("127.0.0.1", 7448, Pin("cd".repeat(32)))
    private lateinit var screen: ActivityController<MainActivity>
    private val activity get() = screen.get()

    private fun idle(seconds: Long = 1) = shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(seconds))

    private fun opened() {
        screen = Robolectric.buildActivity(MainActivity::class.java).setup()
        idle()
    }

    private fun left() {
        screen.pause().stop().destroy()
    }

    private fun press(id: Int) {
        assertTrue(sees(id), activity.resources.getResourceName(id))
        activity.findViewById<View>(id).performClick()
        idle()
    }

    private fun sees(id: Int) = activity.findViewById<View>(id)?.isShown == true

    private fun text(id: Int) = activity.findViewById<TextView>(id).text.toString().plain()

    private fun row(id: Int, n: Int): View = activity.findViewById<ViewGroup>(id).getChildAt(n)

    private fun rows(id: Int) = activity.findViewById<ViewGroup>(id).childCount

    private fun touch(id: Int, n: Int) {
        row(id, n).performClick()
        idle()
    }

    /** Pairs by a code on the Pair screen. */
    private fun paired(asExperimenter: Boolean = true) {
        val node = FleetNode("alpha", Pairing("127.0.0.1", 1, Pin("ab".repeat(32))))
        app.controller = { Admission(listOf(node), at.takeIf { asExperimenter }) }
        opened()
        press(R.id.tab_pair)
        activity.findViewById<EditText>(R.id.line).setText(CODE)
        press(R.id.pair)
    }

    private fun type(speed: String) {
        activity.findViewById<EditText>(R.id.speed_text).setText(speed)
        press(R.id.speed_add)
    }

    private fun ready() {
        paired()
        press(R.id.tab_experiment)
        touch(R.id.campaigns, 0)
        press(R.id.check)
    }

    @Test
    fun `who is no experimenter has no such screen, and is told how to get it`() {
        paired(asExperimenter = false)
        assertFalse(sees(R.id.tab_experiment))
        assertEquals(app.getString(R.string.exp_how), text(R.id.experimenter))
        assertEquals(emptyList(), controller.asked)
    }

    @Test
    @Config(qualifiers = "w891dp-h411dp-land-420dpi")
    fun `what a check found is seen without scrolling`() {
        ready()
        val found = activity.findViewById<View>(R.id.ready)
        val seen = Rect()
        assertTrue(found.getGlobalVisibleRect(seen) && seen.height() == found.height, "$seen of ${found.height}")
    }

    @Test
    fun `from a code to a shared report`() {
        paired()
        assertContains(text(R.id.experimenter), "127.0.0.1:7448")
        press(R.id.tab_experiment)
        assertEquals(2, rows(R.id.campaigns))
        assertContains(row(R.id.campaigns, 1).findViewById<TextView>(R.id.standing).text.toString(), "pair NAME")

        touch(R.id.campaigns, 0)
        assertEquals("8 trials, about 12 min, on 0.6 km of road", text(R.id.plan))
        assertEquals(listOf("10.1", "20.2"), List(rows(R.id.speeds)) { (row(R.id.speeds, it) as CheckBox).text })
        touch(R.id.speeds, 0)
        type("0")
        assertEquals(app.getString(R.string.exp_speed_bad), activity.findViewById<EditText>(R.id.speed_text).error)
        type("50")
        press(R.id.fewer)
        assertEquals("4 trials, about 6 min, on 0.6 km of road", text(R.id.plan))
        assertFalse(activity.findViewById<View>(R.id.start).isEnabled)

        controller.needs = listOf(Need("bravo", "gps", "unmet", "no fix", "wait for the sky"))
        press(R.id.check)
        assertEquals("bravo, gps: no fix", row(R.id.needs, 0).findViewById<TextView>(R.id.found).text.toString())
        assertFalse(activity.findViewById<View>(R.id.start).isEnabled)
        controller.needs = emptyList()
        press(R.id.check)
        press(R.id.start)
        assertEquals(Choice("velocity", null, listOf(5.6, 13.889), 1), controller.started.single().choice)

        val name = controller.started.single().name
        assertEquals(name, text(R.id.run_name))
        press(R.id.pause)
        assertFalse(sees(R.id.pause))
        press(R.id.resume)
        press(R.id.end)
        assertEquals(app.getString(R.string.exp_end_sure), text(R.id.end))
        assertEquals(listOf("pause $name", "resume $name"), controller.steered, "it is asked once more")
        press(R.id.end)
        assertEquals("end $name", controller.steered.last())
        assertFalse(sees(R.id.end) || sees(R.id.resume) || sees(R.id.pause))

        touch(R.id.files, 1)
        val chooser = assertNotNull(shadowOf(app).nextStartedActivity)
        val shared = assertNotNull(chooser.getParcelableExtra(Intent.EXTRA_INTENT, Intent::class.java))
        assertTrue(shared.flags and Intent.FLAG_GRANT_READ_URI_PERMISSION != 0)
        assertEquals("text/html", shared.type)
        val uri = assertNotNull(shared.getParcelableExtra(Intent.EXTRA_STREAM, Uri::class.java))
        val got = assertNotNull(app.contentResolver.openInputStream(uri)).use { it.reader().readText() }
        assertEquals("report.html of $name", got)
        touch(R.id.files, 0)
        assertEquals(Intent.ACTION_VIEW to uri, shadowOf(app).nextStartedActivity.let { it.action to it.data })
    }

    @Test
    fun `a range test is one tap, and its log is shown and shared by place`() {
        controller.hasRangeTest = true
        controller.names = listOf("places.csv", "places.gpx")
        controller.places = Places(
            187.4,
            listOf(Stretch(0.0, 200.0, 14, 5.6, null, 1.84e7, 2.5), Stretch(200.0, 400.0, 9, wifiSignalDbm = -71.4)),
            listOf(Spot(50.0, 8.0, 1.84e7), Spot(50.001, 8.0)),
        )
        paired()
        press(R.id.tab_experiment)
        assertEquals("Range test", (row(R.id.ranges, 0) as TextView).text.toString())
        touch(R.id.ranges, 0)
        idle(2)
        assertEquals(Choice("range-test"), controller.started.single().choice)
        assertTrue(controller.asked.indexOf("preflight") in 0..<controller.asked.indexOf("start"))
        val name = controller.started.single().name
        assertEquals(name, text(R.id.run_name))
        press(R.id.end)
        press(R.id.end)
        assertEquals(listOf("end $name"), controller.steered)
        idle(2)
        assertEquals("Something came through up to 187 m away.", text(R.id.farthest))
        assertEquals(
            "18.4 Mbit/s, 2.5 % lost, no signal known, 20.2 km/h",
            row(R.id.stretches, 0).findViewById<TextView>(R.id.value).text.toString().plain(),
        )
        assertEquals(
            "no throughput known, no loss known, -71\u00A0dBm of the access point, no speed known",
            row(R.id.stretches, 1).findViewById<TextView>(R.id.value).text.toString(),
        )
        val chart = activity.findViewById<View>(R.id.signal_chart).contentDescription
        assertEquals("Access point by Android, dBm: -71.4 to -71.4", chart)
        assertTrue(sees(R.id.throughput_chart) && sees(R.id.way))
        touch(R.id.files, 0)
        val chooser = assertNotNull(shadowOf(app).nextStartedActivity)
        val shared = assertNotNull(chooser.getParcelableExtra(Intent.EXTRA_INTENT, Intent::class.java))
        assertEquals("text/csv", shared.type)
        press(R.id.to_list_too)
        touch(R.id.runs, 0)
        assertEquals(name, text(R.id.run_name))
    }

    @Test
    fun `a range test with a need that is not met is not started, and says what it is`() {
        controller.hasRangeTest = true
        controller.needs = listOf(Need("alpha", "gps", "unmet", "no fix", "wait for the sky"))
        paired()
        press(R.id.tab_experiment)
        touch(R.id.ranges, 0)
        idle(2)
        assertEquals("alpha, gps: no fix", row(R.id.needs, 0).findViewById<TextView>(R.id.found).text.toString())
        controller.needs = emptyList()
        press(R.id.check)
        assertEquals(emptyList(), controller.started, "who mends it starts it")
        press(R.id.start)
        assertEquals(Choice("range-test"), controller.started.single().choice)
    }

    @Test
    fun `a range test that somebody turns back from is not started`() {
        controller.hasRangeTest = true
        paired()
        press(R.id.tab_experiment)
        controller.isAway = true
        touch(R.id.ranges, 0)
        press(R.id.to_list)
        controller.isAway = false
        idle(70)
        assertEquals(emptyList(), controller.started)
        touch(R.id.campaigns, 0)
        idle(70)
        assertEquals(emptyList(), controller.started)
    }

    @Test
    fun `a speed that is offered is not driven twice`() {
        ready()
        touch(R.id.speeds, 1)
        type("20.2") // 5.611 m/s; 5.6 is offered, and shown so
        type("10.1")
        type("30")
        assertEquals(listOf(2.8, 5.6, 8.333), app.experiment.state.value.choice?.speedsMps)
    }

    @Test
    fun `nodes that are still to be put back are, whatever the run's phase is`() {
        paired()
        press(R.id.tab_experiment)
        for (phase in listOf("paused", "failed", "ended", "complete")) {
            controller.runs = listOf(sampleRun("velocity-$phase", phase).copy(said = "bravo is out of reach"))
            controller.version++
            idle(30)
            touch(R.id.present, 0)
            assertEquals(app.getString(R.string.exp_put_back), text(R.id.pause))
            press(R.id.pause)
            assertEquals("pause velocity-$phase", controller.steered.last())
            press(R.id.to_list_too)
        }
        controller.runs = listOf(sampleRun("velocity-1", "complete"))
        controller.version++
        idle(30)
        touch(R.id.runs, 0)
        assertFalse(sees(R.id.pause))
    }

    @Test
    fun `a second tap ends the run that the first was of`() {
        paired()
        press(R.id.tab_experiment)
        controller.runs = listOf(sampleRun("velocity-2"), sampleRun("velocity-1"))
        controller.version++
        idle(30)
        touch(R.id.present, 0)
        activity.findViewById<View>(R.id.end).performClick()
        app.experiment.open("velocity-1")
        idle()
        press(R.id.end)
        assertEquals(emptyList(), controller.steered)
        press(R.id.end)
        assertEquals(listOf("end velocity-1"), controller.steered)
    }

    @Test
    fun `an experimenter's phone is unpaired by two taps, for the role and what waits go, too`() {
        opened()
        app.experiment.pair(at)
        controller.isAway = true
        app.experiment.steer("velocity-1", Steer.END)
        press(R.id.tab_pair)
        press(R.id.unpair)
        assertEquals(app.getString(R.string.pair_undo_sure), text(R.id.unpair))
        assertEquals(at to Steer.END, app.experiment.pairing to app.experiment.state.value.wish("velocity-1"))
        press(R.id.unpair)
        assertNull(app.experiment.pairing)
    }

    @Test
    fun `who is no experimenter unpairs by one tap`() {
        paired(asExperimenter = false)
        press(R.id.unpair)
        assertNull(app.session.pairing)
    }

    @Test
    fun `a request that came too late is told by its name`() {
        opened()
        for ((how, words) in mapOf(Steer.START to "start it again", Steer.RESUME to "tap Go on again")) {
            val old = Wish(how, "velocity-1", Choice("velocity"), wishedS = 0)
            left()
            app.preferences.experiment.save(
                WireJson.encodeToString(Kept.serializer(), Kept("$at", wishes = listOf(old))),
            )
            app.die()
            opened()
            press(R.id.tab_experiment)
            assertContains(text(R.id.refused), words)
        }
        assertEquals(emptyList(), controller.started.map { it.name } + controller.steered)
    }

    @Test
    fun `only files that are shared are given away, and only to be read`() {
        val folder = SharedFiles.folder(app).apply { mkdirs() }
        File(folder, "report.html").writeText("a report")
        File(app.filesDir, "secret").writeText("a key")
        val uri = Uri.parse("content://dev.fieldmesh.app.files/report.html")
        val known = assertNotNull(app.contentResolver.query(uri, null, null, null, null))
        assertTrue(known.moveToFirst())
        assertEquals("report.html" to 8L, known.getString(0) to known.getLong(1))
        known.close()
        val gone = Uri.parse("content://dev.fieldmesh.app.files/gone.html")
        assertEquals(0, app.contentResolver.query(gone, null, null, null, null)?.use { it.count })
        for (path in listOf("../../files/secret", "%2e%2e/%2e%2e/files/secret", "..%2f..%2ffiles%2fsecret", "", "no")) {
            val other = Uri.parse("content://dev.fieldmesh.app.files/$path")
            assertFailsWith<FileNotFoundException>(path) { app.contentResolver.openFileDescriptor(other, "r") }
        }
        for (mode in listOf("w", "rw", "wt")) {
            assertFailsWith<FileNotFoundException>(mode) { app.contentResolver.openFileDescriptor(uri, mode) }
        }
    }

    @Test
    fun `a start goes on when the screen is left and the process ends before the answer, and is one run`() {
        ready()
        controller.losesAnswers = true
        press(R.id.start)
        assertEquals(app.getString(R.string.exp_starting), text(R.id.hindrance))
        val name = controller.started.first().name
        left()
        idle(5)
        assertTrue(controller.started.size > 1, "it is asked again without a screen")
        app.die()
        opened()
        press(R.id.tab_experiment)
        assertEquals(app.getString(R.string.exp_starting), text(R.id.hindrance))
        controller.losesAnswers = false
        idle(70)
        assertEquals(setOf(name), controller.started.map { it.name }.toSet())
        assertEquals(listOf(name), controller.runs.map { it.name })
        assertEquals(name, text(R.id.run_name))
        val asked = controller.started.size
        left()
        app.die()
        opened()
        idle(70)
        assertEquals(asked, controller.started.size, "what was answered is not asked again")
    }

    @Test
    fun `a start that waits for the controller is taken back`() {
        ready()
        controller.isAway = true
        press(R.id.start)
        press(R.id.take_back)
        controller.isAway = false
        idle(70)
        assertEquals(emptyList(), controller.started)
        assertTrue(activity.findViewById<View>(R.id.start).isEnabled)
    }

    @Test
    fun `a pause or an end that waits for the controller is taken back`() {
        paired()
        press(R.id.tab_experiment)
        controller.runs = listOf(sampleRun("velocity-1"))
        controller.version++
        idle(30)
        touch(R.id.present, 0)
        assertFalse(sees(R.id.wish_back), "nothing was asked for")
        controller.isAway = true
        press(R.id.pause)
        assertFalse(sees(R.id.pause) || sees(R.id.resume))
        assertEquals(app.getString(R.string.exp_not_pause), text(R.id.wish_back))
        press(R.id.wish_back)
        press(R.id.end)
        press(R.id.end)
        assertEquals(app.getString(R.string.exp_not_end), text(R.id.wish_back))
        press(R.id.wish_back)
        assertTrue(sees(R.id.pause) && !sees(R.id.wish_back))
        controller.isAway = false
        idle(70)
        assertEquals(emptyList(), controller.steered)
    }

    @Test
    fun `back leads from a campaign to the list, and unpairing ends the role`() {
        ready()
        @Suppress("DEPRECATION")
        activity.onBackPressed()
        idle()
        assertTrue(sees(R.id.campaigns) && !activity.isFinishing)
        press(R.id.tab_pair)
        repeat(2) { press(R.id.unpair) }
        assertFalse(sees(R.id.tab_experiment))
        assertNull(app.experiment.pairing)
        left()
        app.die()
        opened()
        assertFalse(sees(R.id.tab_experiment))
    }

    @Test
    fun `nobody is asked while no screen is there`() {
        paired()
        left()
        controller.asked.clear()
        idle(300)
        assertEquals(emptyList(), controller.asked)
    }

    internal companion object {
        const val CODE = "FIELDMESH-PAIR/127.0.0.1:1/AAAQEAYEAUDAOCAJBIFQYDIOB4ASGRLHRGV433YBENCWPCNLZXXXATD3"
    }
}
