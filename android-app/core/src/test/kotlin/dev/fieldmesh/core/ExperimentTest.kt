package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Finder
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.agent.Seeker
import dev.fieldmesh.core.experiment.ControllerLink
import dev.fieldmesh.core.experiment.Experiment
import dev.fieldmesh.core.experiment.Fetched
import dev.fieldmesh.core.experiment.Hindrance
import dev.fieldmesh.core.experiment.Steer
import dev.fieldmesh.core.wire.Choice
import dev.fieldmesh.core.wire.Need
import dev.fieldmesh.core.wire.WireError
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.cancel
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.flowOf
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.runTest
import java.io.File
import java.io.IOException
import java.nio.file.Files
import java.time.LocalDateTime
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** An experimenter's work, over networks and processes that fail; in virtual time. */
@OptIn(ExperimentalCoroutinesApi::class)
class ExperimentTest {
    private val at = Pairing("127.0.0.1", 7448, Pin("ab".repeat(32)))
    private val shelf = MemoryShelf()
    private val controller = FakeController()
    private val folder: File = Files.createTempDirectory("shared").toFile()

    @AfterTest
    fun clean() {
        folder.deleteRecursively()
    }

    private var time = NOON

    private val processes = mutableListOf<CoroutineScope>()

    /** In virtual time; no process of the app outlives the test, which would go on for ever. */
    private fun living(test: suspend TestScope.() -> Unit) = runTest {
        try {
            test()
        } finally {
            processes.forEach { it.cancel() }
        }
    }

    private fun TestScope.process() = CoroutineScope(coroutineContext + Job()).also { processes += it }

    /** One life of the app's process, in which somebody looks at the screen. */
    private inner class Life(test: TestScope) {
        private val scope = test.process()
        val app = Experiment(scope, shelf, { time }, folder) { controller }
        val state get() = app.state.value

        init {
            scope.launch { app.watch() }
        }

        fun end() = scope.cancel()
    }

    private fun TestScope.experimenter() = Life(this).apply {
        app.pair(at)
        advanceTimeBy(1000)
    }

    private fun TestScope.ready() = experimenter().apply {
        app.choose("velocity")
        advanceTimeBy(1000)
        app.check()
        advanceTimeBy(1000)
        assertNull(state.hindrance)
    }

    @Test
    fun `a phone without the experimenter's role asks nobody`() = living {
        val life = Life(this)
        advanceTimeBy(60_000)
        assertFalse(life.state.isExperimenter)
        assertEquals(emptyList(), controller.asked)
        life.end()
    }

    @Test
    fun `a controller at a new address is followed there, and at the next start at once`() = living {
        val (old, new) = listOf("192.168.43.7", "192.168.12.4").map { at.copy(host = it) }
        val seeker = Seeker(Finder { flowOf(at.copy(pin = Pin("cd".repeat(32))), new) })
        val moved = FakeController()
        val scope = process()
        val app = Experiment(scope, shelf, { NOON }, folder, seeker) { if (it == new) moved else controller }
        scope.launch { app.watch() }
        app.pair(old)
        advanceTimeBy(1000)
        app.choose("velocity")
        controller.isAway = true
        advanceTimeBy(60_000)
        assertEquals(new to ControllerLink.UP, app.pairing to app.state.value.link)
        assertEquals("velocity", app.state.value.choice?.campaign, "what a person chose stays")
        scope.cancel()
        assertEquals(new, Experiment(process(), shelf, { NOON }, folder) { controller }.pairing)
    }

    @Test
    fun `campaigns and runs are followed, over a network that fails`() = living {
        val life = experimenter()
        assertEquals(ControllerLink.UP, life.state.link)
        assertEquals(listOf("velocity", "grid"), life.state.campaigns?.map { it.name })
        controller.isAway = true
        advanceTimeBy(60_000)
        assertEquals(ControllerLink.LOST, life.state.link)
        controller.isAway = false
        controller.runs = listOf(sampleRun("velocity-1"))
        advanceTimeBy(5_000)
        assertEquals(ControllerLink.UP to listOf("velocity-1"), life.state.link to life.state.runs?.map { it.name })
        controller.refusal = AgentException.NotPaired(null)
        advanceTimeBy(60_000)
        assertEquals(ControllerLink.NOT_EXPERIMENTER, life.state.link)
        life.end()
    }

    @Test
    fun `speeds are those of the plan until a person chooses, and one remains`() = living {
        val life = experimenter()
        life.app.choose("velocity")
        assertEquals(Hindrance.UNPLANNED, life.state.hindrance)
        advanceTimeBy(1000)
        assertEquals(mapOf(2.8 to true, 5.6 to true), life.state.speeds)
        assertEquals(8 to 2, life.state.planned?.trials to life.state.repetitions)
        life.app.speed(13.889, true)
        life.app.speed(2.8, false)
        life.app.repetitions(1)
        advanceTimeBy(1000)
        assertEquals(Choice("velocity", null, listOf(5.6, 13.889), 1), life.state.choice)
        assertEquals(mapOf(2.8 to false, 5.6 to true, 13.889 to true), life.state.speeds)
        assertEquals(4, life.state.planned?.trials)
        life.app.speed(13.889, false)
        life.app.speed(5.6, false)
        assertEquals(listOf(5.6), life.state.choice?.speedsMps, "one speed remains")
        life.app.speed(2.8, true)
        assertNull(life.state.choice?.speedsMps, "these are the campaign's own")
        life.app.repetitions(0)
        assertEquals(1, life.state.choice?.repetitions)
        life.app.scale("smoke")
        assertEquals(Choice("velocity", "smoke"), life.state.choice)
        life.end()
    }

    @Test
    fun `a plan that is refused says why, and the next one clears it`() = living {
        val life = experimenter()
        controller.planFault = WireError("bad_request", "speed_mps: 90 is above 60")
        life.app.choose("velocity")
        advanceTimeBy(1000)
        assertEquals("bad_request", assertIs<AgentException.Refused>(life.state.refused).error.code)
        assertNull(life.state.planned)
        controller.planFault = null
        life.app.repetitions(3)
        advanceTimeBy(1000)
        assertNull(life.state.refused)
        assertEquals(12, life.state.planned?.trials)
        life.end()
    }

    @Test
    fun `a check is of one choice, and what is in the way comes first`() = living {
        val life = experimenter()
        life.app.choose("velocity")
        advanceTimeBy(1000)
        assertEquals(Hindrance.UNCHECKED, life.state.hindrance)
        controller.needs = listOf(
            Need("alpha", "radio", "met", "wlan0"),
            Need("alpha", "gps", "unknown", "no answer"),
            Need("bravo", "gps", "unmet", "no fix", "wait"),
        )
        life.app.check()
        assertTrue(life.state.isChecking)
        advanceTimeBy(1000)
        assertEquals(listOf("unmet", "unknown", "met"), life.state.needs.map { it.outcome })
        assertEquals(Hindrance.UNREADY, life.state.hindrance)
        life.app.start()
        assertEquals(emptyList(), life.state.wishes)
        life.app.repetitions(1)
        assertEquals(emptyList(), life.state.needs)
        assertFalse(life.state.isChecking)
        life.end()
    }

    @Test
    fun `a check goes on when the network fails and the screen is left, and is dropped with its choice`() = living {
        val scope = process()
        val app = Experiment(scope, shelf, { NOON }, folder) { controller }
        app.pair(at)
        app.choose("velocity")
        controller.isAway = true
        app.check()
        advanceTimeBy(300_000)
        assertTrue(app.state.value.isChecking)
        controller.isAway = false
        advanceTimeBy(70_000)
        assertNotNull(app.state.value.preflight)
        controller.isAway = true
        app.check()
        advanceTimeBy(1000)
        app.choose(null)
        controller.isAway = false
        advanceTimeBy(120_000)
        assertNull(app.state.value.preflight)
        assertFalse(app.state.value.isChecking)
    }

    @Test
    fun `a start whose answer is lost is the same run when it is asked again`() = living {
        val life = ready()
        controller.losesAnswers = true
        life.app.start()
        life.app.start()
        advanceTimeBy(10_000)
        assertEquals(Hindrance.STARTING, life.state.hindrance)
        controller.losesAnswers = false
        advanceTimeBy(10_000)
        assertEquals(setOf("velocity-1129-120000"), controller.started.map { it.name }.toSet())
        assertTrue(controller.started.size > 1, "it was asked again")
        assertEquals(listOf("velocity-1129-120000"), controller.runs.map { it.name })
        assertEquals("velocity-1129-120000" to null, life.state.opened to life.state.choice)
        assertEquals(emptyList(), life.state.wishes)
        life.end()
    }

    @Test
    fun `a process that ends between start and answer goes on with the same name`() = living {
        val life = ready()
        controller.losesAnswers = true
        life.app.start()
        advanceTimeBy(1000)
        life.end()
        controller.losesAnswers = false
        val next = Life(this)
        assertEquals(Steer.START, next.state.starting?.steer)
        advanceTimeBy(1000)
        assertEquals(setOf("velocity-1129-120000"), controller.started.map { it.name }.toSet())
        assertEquals("velocity-1129-120000", next.state.run?.name)
        assertNull(next.state.starting)
        val asked = controller.started.size
        next.end()
        val third = Life(this)
        advanceTimeBy(1000)
        assertEquals(asked, controller.started.size, "what was answered is not asked again")
        assertEquals("velocity-1129-120000", third.state.run?.name)
        third.end()
    }

    @Test
    fun `two runs of one second have two names`() = living {
        val life = ready()
        controller.runs = listOf(sampleRun("velocity-1129-120000", "complete"))
        controller.version++
        advanceTimeBy(30_000)
        life.app.start()
        advanceTimeBy(1000)
        assertEquals("velocity-1129-120000-2", controller.started.single().name)
        life.end()
    }

    @Test
    fun `a start that is refused is dropped with the reason, and one that is taken back is not asked again`() =
        runTest {
            val life = ready()
            controller.startFault = WireError("conflict", "run other is under way")
            life.app.start()
            advanceTimeBy(1000)
            assertIs<AgentException.Refused>(life.state.refused)
            assertNull(life.state.starting)
            assertNull(life.state.hindrance, "it can be tried again")
            controller.startFault = null
            controller.isAway = true
            life.app.start()
            advanceTimeBy(1000)
            life.app.takeBack("velocity-1129-120000")
            controller.isAway = false
            advanceTimeBy(120_000)
            assertEquals(1, controller.started.size)
            assertEquals(emptyList(), controller.runs)
            life.end()
        }

    @Test
    fun `a pause that waits for the controller is taken back, and never comes true`() = living {
        val life = experimenter()
        controller.runs = listOf(sampleRun("velocity-2"), sampleRun("velocity-1"))
        advanceTimeBy(30_000)
        controller.isAway = true
        for (run in listOf("velocity-1", "velocity-2")) life.app.steer(run, Steer.PAUSE)
        advanceTimeBy(1000)
        life.app.takeBack("velocity-1")
        assertNull(life.state.wish("velocity-1"))
        life.end()
        controller.isAway = false
        val next = Life(this)
        advanceTimeBy(120_000)
        assertEquals(listOf("pause velocity-2"), controller.steered, "the other is still wanted")
        next.end()
    }

    @Test
    fun `the newest wish for a run stands, and outlives the process`() = living {
        val life = experimenter()
        controller.runs = listOf(sampleRun("velocity-1"))
        advanceTimeBy(30_000)
        life.app.open("velocity-1")
        controller.isAway = true
        life.app.steer("velocity-1", Steer.PAUSE)
        advanceTimeBy(1000)
        life.app.steer("velocity-1", Steer.END)
        advanceTimeBy(1000)
        assertEquals(Steer.END, life.state.wish("velocity-1"))
        life.end()
        controller.isAway = false
        val next = Life(this)
        advanceTimeBy(1000)
        assertEquals(listOf("end velocity-1"), controller.steered)
        assertEquals("ended", next.state.run?.phase)
        assertNull(next.state.wish("velocity-1"))
        next.end()
    }

    @Test
    fun `a wish that is refused for now is told, asked for again, and holds up no other`() = living {
        val life = experimenter()
        controller.runs = listOf(sampleRun("velocity-2"), sampleRun("velocity-1"))
        controller.busy = setOf("velocity-1")
        life.app.steer("velocity-1", Steer.END)
        advanceTimeBy(5000)
        assertEquals("unavailable", assertIs<AgentException.Refused>(life.state.refused).error.code)
        assertEquals(Steer.END, life.state.wish("velocity-1"))
        life.app.steer("velocity-2", Steer.PAUSE)
        advanceTimeBy(1000)
        assertEquals(listOf("pause velocity-2"), controller.steered)
        advanceTimeBy(20_000)
        assertNotNull(life.state.refused)
        controller.busy = emptySet()
        advanceTimeBy(60_000)
        assertEquals(listOf("pause velocity-2", "end velocity-1"), controller.steered)
        assertNull(life.state.refused)
        life.end()
    }

    @Test
    fun `a start that waited too long is not made, and a pause is`() = living {
        val life = ready()
        controller.runs = listOf(sampleRun("velocity-1"))
        controller.isAway = true
        life.app.start()
        life.app.steer("velocity-1", Steer.PAUSE)
        advanceTimeBy(1000)
        life.end()
        time = NOON.plusMinutes(11)
        controller.isAway = false
        val next = Life(this)
        advanceTimeBy(1000)
        assertEquals("velocity-1129-120000", assertIs<AgentException.TooOld>(next.state.refused).run)
        assertEquals(emptyList(), next.state.wishes)
        assertEquals(emptyList(), controller.started)
        assertEquals(listOf("pause velocity-1"), controller.steered)
        next.end()
    }

    @Test
    fun `a check is of its moment, and one of long ago lets nothing begin`() = living {
        val life = ready()
        time = NOON.plusMinutes(9)
        advanceTimeBy(20_000)
        assertNull(life.state.hindrance)
        time = NOON.plusMinutes(11)
        advanceTimeBy(20_000)
        assertEquals(Hindrance.UNCHECKED, life.state.hindrance)
        life.app.check()
        advanceTimeBy(1000)
        assertNull(life.state.hindrance)
        life.end()
    }

    @Test
    fun `a check that grew old while nobody looked lets nothing begin`() = living {
        val app = Experiment(process(), shelf, { time }, folder) { controller }
        app.pair(at)
        app.choose("velocity")
        advanceTimeBy(1000)
        app.check()
        advanceTimeBy(1000)
        time = NOON.plusHours(3)
        app.start()
        assertEquals(emptyList(), app.state.value.wishes)
        assertEquals(Hindrance.UNCHECKED, app.state.value.hindrance)
    }

    @Test
    fun `what is in the way stays on the screen for as long as it takes to mend it`() = living {
        controller.needs = listOf(Need("bravo", "gps", "unmet", "no fix", "wait"))
        val life = experimenter()
        life.app.choose("velocity")
        advanceTimeBy(1000)
        life.app.check()
        time = NOON.plusHours(1)
        advanceTimeBy(60_000)
        assertEquals(listOf("gps") to Hindrance.UNREADY, life.state.needs.map { it.need } to life.state.hindrance)
        life.end()
    }

    @Test
    fun `one tap whose check waited too long begins nothing`() = living {
        controller.hasRangeTest = true
        val life = experimenter()
        controller.isAway = true
        life.app.choose("range-test", begins = true)
        advanceTimeBy(60_000)
        time = NOON.plusMinutes(11)
        controller.isAway = false
        advanceTimeBy(120_000)
        assertIs<AgentException.TooOld>(life.state.refused)
        assertNotNull(life.state.preflight)
        assertEquals(emptyList(), controller.started)
        life.app.start()
        advanceTimeBy(1000)
        assertEquals(1, controller.started.size, "who is there starts it")
        life.end()
    }

    @Test
    fun `one tap whose check waited for a moment begins`() = living {
        controller.hasRangeTest = true
        val life = experimenter()
        controller.isAway = true
        life.app.choose("range-test", begins = true)
        advanceTimeBy(60_000)
        time = NOON.plusMinutes(9)
        controller.isAway = false
        advanceTimeBy(120_000)
        assertEquals(1, controller.started.size)
        life.end()
    }

    @Test
    fun `a run's log is shown anew while it goes, and when its nodes are put back`() = living {
        controller.runs = listOf(sampleRun("range-1"))
        val life = experimenter()
        life.app.open("range-1")
        advanceTimeBy(1000)
        fun logOf(m: Double) = controller.places.copy(farthestM = m).also { controller.places = it }
        logOf(100.0) // of a rejected attempt, of which the run tells nothing
        advanceTimeBy(61_000)
        assertEquals(100.0, life.state.places?.farthestM)
        val asked = controller.asked.count { it == "files" }
        advanceTimeBy(600_000)
        assertTrue(controller.asked.count { it == "files" } - asked in 9..11, "once a minute")
        life.app.steer("range-1", Steer.END)
        advanceTimeBy(10_000)
        assertEquals("ended", life.state.run?.phase)
        for ((how, m) in listOf(Steer.END to 200.0, Steer.PAUSE to 300.0)) { // again; put the nodes back
            logOf(m)
            life.app.steer("range-1", how)
            advanceTimeBy(1000)
            assertEquals(m, life.state.places?.farthestM)
        }
        val after = controller.asked.count { it == "files" }
        advanceTimeBy(600_000)
        assertEquals(after, controller.asked.count { it == "files" }, "it is over")
        life.end()
    }

    @Test
    fun `a call that takes too long does not tell that the controller is lost, which is followed`() = living {
        val life = experimenter()
        controller.steerTimesOut = true
        life.app.steer("velocity-1", Steer.PAUSE)
        advanceTimeBy(100)
        assertEquals(ControllerLink.UP, life.state.link)
        life.end()
    }

    @Test
    fun `a file that this phone cannot keep is told, and not fetched for ever`() = living {
        controller.runs = listOf(sampleRun("velocity-1"))
        val life = experimenter()
        life.app.open("velocity-1")
        advanceTimeBy(1000)
        controller.fetchFault = AgentException.Unstored(IOException("No space left on device"))
        life.app.fetch("report.html", toOpen = true)
        advanceTimeBy(1000)
        assertIs<AgentException.Unstored>(life.state.refused)
        assertNull(life.state.fetching)
        assertEquals(ControllerLink.UP, life.state.link)
        life.end()
    }

    @Test
    fun `a key that cannot be read is told, and the controller asked when it can`() = living {
        var fault: AgentException? = AgentException.NoKey(IOException("the key store is broken"))
        val scope = process()
        val app = Experiment(scope, shelf, { NOON }, folder) { fault?.let { throw it } ?: controller }
        scope.launch { app.watch() }
        app.pair(at)
        advanceTimeBy(1000)
        assertIs<AgentException.NoKey>(app.state.value.refused)
        assertEquals(ControllerLink.CONNECTING, app.state.value.link)
        fault = null
        advanceTimeBy(10_000)
        assertEquals(ControllerLink.UP, app.state.value.link)
    }

    @Test
    fun `a run's files are listed and fetched, and no path leads out of their folder`() = living {
        controller.runs = listOf(sampleRun("velocity-1"))
        controller.names = listOf("report.html", "../../keys", "results.csv")
        val life = experimenter()
        life.app.open("velocity-1")
        advanceTimeBy(1000)
        assertEquals(listOf("report.html", "results.csv"), life.state.files.map { it.name })
        controller.isAway = true
        life.app.fetch("report.html", toOpen = true)
        advanceTimeBy(1000)
        assertEquals("report.html", life.state.fetching)
        val came = async { life.app.fetched.first() }
        controller.isAway = false
        advanceTimeBy(120_000)
        assertEquals(Fetched(File(folder, "velocity-1/report.html"), toOpen = true), came.await())
        assertNull(life.state.fetching)
        life.app.fetch("../../keys", toOpen = false)
        assertNull(life.state.fetching)
        life.end()
    }

    @Test
    fun `another controller's code forgets what was asked of this one`() = living {
        val life = ready()
        controller.isAway = true
        life.app.start()
        life.app.pair(at.copy(port = 7449))
        controller.isAway = false
        advanceTimeBy(120_000)
        assertEquals(emptyList(), controller.started)
        assertEquals(true to null, life.state.isExperimenter to life.state.choice)
        life.app.pair(null)
        assertFalse(life.state.isExperimenter)
        life.end()
        assertFalse(Life(this).apply { end() }.state.isExperimenter)
    }

    private companion object {
        val NOON: LocalDateTime = LocalDateTime.of(2026, 11, 29, 12, 0)
    }
}
