package dev.fieldmesh.core.real

import dev.fieldmesh.core.MemoryShelf
import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.AgentLink
import dev.fieldmesh.core.agent.ControllerClient
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.WiFiLook
import dev.fieldmesh.core.agent.join
import dev.fieldmesh.core.agent.pushFixes
import dev.fieldmesh.core.agent.pushWiFi
import dev.fieldmesh.core.agent.renewed
import dev.fieldmesh.core.app.Instrument
import dev.fieldmesh.core.experiment.Experiment
import dev.fieldmesh.core.experiment.ExperimentState
import dev.fieldmesh.core.experiment.Hindrance
import dev.fieldmesh.core.experiment.Steer
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.core.wire.Choice
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.cancel
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import java.io.File
import java.nio.file.Files
import java.time.LocalDateTime
import java.util.concurrent.Executors
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertTrue

/**
 * A campaign from the phone alone, from the pairing to the shared report: the app's own code against a real
 * `fieldmesh serve` and two real agents. The phone is in the car: its node has no GPS but the fixes that the app
 * pushes. So has the roadside's for the range test.
 */
class CampaignsTest {
    private val field = Field(File(System.getProperty("fieldmesh.field")), System.getProperty("fieldmesh.namespaces"))
    private val one = Executors.newSingleThreadExecutor().asCoroutineDispatcher()
    private val scope = CoroutineScope(one)
    private val folder: File = Files.createTempDirectory("shared").toFile()
    private val shelf = MemoryShelf()
    private val instrument = Instrument(System::nanoTime) { _, _ -> }
    private val fixes = MutableSharedFlow<Fix>(replay = 1)
    private val phone = newIdentity("app")

    @Volatile private var isDriving = false
    private lateinit var experiment: Experiment

    @AfterTest
    fun end() {
        scope.cancel()
        one.close()
        field.stop()
        folder.deleteRecursively()
        field.forgetApps("alpha")
    }

    @Test
    fun `from a code to a shared report`(): Unit = runBlocking {
        try {
            story()
        } catch (e: Throwable) {
            if (::experiment.isInitialized) println("experiment: ${experiment.state.value}")
            println("drive: ${instrument.state.value.drive}\n${field.log()}")
            throw e
        }
    }

    private suspend fun story() {
        field.giveKeys("alpha")
        field.letIn("bravo", phone.pin) // which is not there when the phone is paired
        field.start("alpha")
        field.serve()
        answers("alpha")
        val controller = paired()
        inTheCar()
        live()
        on { pair(controller) }
        val list = reach("the campaigns are there") { it.campaigns != null }.campaigns.orEmpty()
        assertContains(list.map { it.name }, "velocity-phones")
        chosen()
        checked()

        on { start() }
        val name = assertNotNull(reach("the run is there") { it.run?.phase == "running" }.opened)
        reach("a trial is accepted") { (it.run?.accepted ?: 0) >= 1 }
        on { steer(name, Steer.PAUSE) }
        reach("it is paused") { it.run?.phase == "paused" && it.wishes.isEmpty() }
        assertEquals(emptyList(), AgentClient(field.pairing("alpha"), phone, Dispatchers.IO).status().host.pending)
        // The app's process ends and begins again, and the run goes on.
        life?.cancel()
        live()
        reach("the run is there again") { it.run?.phase == "paused" }
        on { steer(name, Steer.RESUME) }
        reach("it goes on") { it.run?.phase == "running" }
        val done = assertNotNull(reach("it is complete") { it.run?.phase == "complete" }.run)
        assertEquals(4 to 4, done.accepted to done.trials)
        assertEquals(listOf(5.6, 11.1), done.sheet?.speeds?.map { it.speedMps })
        assertTrue(done.sheet?.speeds.orEmpty().all { it.n == 2 && it.meanBps > 0 }, "${done.sheet}")
        shared(name)
        ranged()
    }

    /**
     * One tap begins a range test of two phones as they are sold, when both know where they are; what it logged is
     * there by place when it is ended in a window.
     */
    private suspend fun ranged() {
        val stock = mapOf("alpha" to "10.77.0.1/24", "bravo" to "10.77.0.2/24")
        stock.keys.forEach(field::stop)
        for ((node, address) in stock) field.startStock(node, address, phone.pin)
        for (node in stock.keys) {
            answers(node)
            inAWiFi(node)
        }
        val car = AgentClient(field.pairing("alpha"), phone, Dispatchers.IO)
        withTimeout(PATIENCE_MS) { while (car.status().gpsRateHz == null) delay(200) }
        isDriving = true
        on { choose("range-test", begins = true) }
        val unmet = reach("the roadside has no GPS") { it.preflight?.ready == false }.needs.first()
        assertEquals(Triple("bravo", "gps", "unmet"), Triple(unmet.node, unmet.need, unmet.outcome))
        val roadside = AgentClient(field.pairing("bravo"), phone, Dispatchers.IO)
        scope.launch { pushFixes(fixes.map { it.copy(lonDeg = ROADSIDE_LON_DEG) }, roadside, System::nanoTime) }
        becomesReady()
        on { choose(null) }
        on { choose("range-test", begins = true) }
        val begun = reach("the range test is under way") { it.run?.campaign == "range-test" && it.underWay != null }
        val name = assertNotNull(begun.opened)
        reach("a window is over") { (it.run?.accepted ?: 0) >= 1 }
        on { steer(name, Steer.END) }
        reach("it is ended") { it.run?.phase == "ended" && it.wishes.isEmpty() }
        val places = assertNotNull(reach("its log is there") { it.places?.way?.isNotEmpty() == true }.places)
        assertTrue(places.way.any { (it.throughputBps ?: 0.0) > 0 }, "$places")
        assertTrue(places.stretches.isNotEmpty() && places.farthestM != null, "$places")
        assertTrue(places.stretches.all { it.signalDbm == null }, "no node hears the other: $places")
        val signals = places.stretches.mapNotNull { it.wifiSignalDbm }
        assertTrue(signals.isNotEmpty() && signals.all { it in -79.0..-50.0 }, "the car's, by distance: $places")
        on { fetch("places.csv", toOpen = false) }
        val log = withTimeout(PATIENCE_MS) { experiment.fetched.first() }.file.readLines()
        val column = log.first().split(',').indexOf("wifi_signal_dbm")
        assertTrue(log.drop(1).any { line -> line.split(',')[column].toDoubleOrNull()?.let { it < 0 } == true }, "$log")
        assertTrue(log.size > places.way.size, "$log")
    }

    /** Android renews what it says about a phone's Wi-Fi every 3 s, and the app looks every half a second. */
    private fun inAWiFi(node: String) = scope.launch {
        val looks = flow {
            while (true) {
                val ns = System.nanoTime()
                val renewed = (ns / 3_000_000_000 % 10).toInt()
                val dbm = (if (node == "alpha") -50 else -90) - 2 * renewed
                emit(WiFiLook(ns, "02:11:22:33:44:77", dbm, 286, null, 5180))
                delay(500)
            }
        }
        pushWiFi(looks.renewed(), AgentClient(field.pairing(node), phone, Dispatchers.IO), System::nanoTime)
    }

    private suspend fun answers(node: String) = withTimeout(PATIENCE_MS) {
        while (runCatching { field.call(node, "GET", "/v1/node") }.isFailure) delay(200)
    }

    /** By a code; another app's is of no use for it. */
    private suspend fun paired(): Pairing {
        val code = assertNotNull(PairingCode.parse(field.offer("experimenter", isExperimenter = true).code))
        val controller = assertNotNull(join(code, phone, Dispatchers.IO).controller)
        val stranger = ControllerClient(controller, newIdentity("stranger"), Dispatchers.IO)
        withTimeout(PATIENCE_MS) {
            while (runCatching { ControllerClient(controller, phone, Dispatchers.IO).campaigns() }.isFailure) delay(200)
        }
        assertFailsWith<AgentException.NotPaired> { stranger.campaigns() }
        return controller
    }

    private var life: Job? = null

    /** The app's process begins. */
    private suspend fun live() = withContext(one) {
        val job = Job().also { life = it }
        experiment = Experiment(CoroutineScope(one + job), shelf, LocalDateTime::now, folder) {
            ControllerClient(it, phone, Dispatchers.IO)
        }
        CoroutineScope(one + job).launch { experiment.watch() }
    }

    private suspend fun chosen() {
        on { choose("stationary-check") }
        val own = reach("its plan is there") { it.planned != null }
        assertEquals(12 to 6, own.planned?.trials to own.speeds.size)
        for (mps in own.speeds.keys - setOf(5.6, 11.1)) on { speed(mps, false) }
        on { repetitions(1) }
        val planned = reach("the choice is planned") { it.planned?.trials == 4 }
        assertEquals(Choice("stationary-check", null, listOf(5.6, 11.1), 1), planned.choice)
        assertEquals(null, planned.planned?.roadM, "nobody moves")
    }

    private suspend fun checked() {
        on { check() }
        val unmet = reach("a need is not met") { it.preflight?.ready == false }
        assertEquals("bravo" to "unmet", unmet.needs.first().let { it.node to it.outcome })
        assertNotNull(unmet.needs.first().cure)
        assertEquals(Hindrance.UNREADY, unmet.hindrance)
        field.start("bravo")
        becomesReady()
        assertEquals(null, experiment.state.value.hindrance)
    }

    /** Checks until nothing is in the way. */
    private suspend fun becomesReady() = withTimeout(PATIENCE_MS) {
        while (experiment.state.value.preflight?.ready != true) {
            on { check() }
            reach("it is checked") { !it.isChecking }
        }
    }

    private suspend fun shared(name: String) {
        reach("its files are listed") { it.files.size == 5 }
        for ((file, says) in mapOf("report.html" to "<html", "results.csv" to "throughput", "tracks.gpx" to "<gpx")) {
            on { fetch(file, toOpen = false) }
            val came = withTimeout(PATIENCE_MS) { experiment.fetched.first() }.file
            assertEquals(File(folder, "$name/$file"), came)
            reach("$file is as long as the list says") { now ->
                now.files.find { it.name == file }?.bytes == came.length()
            }
            assertContains(came.readText(), says)
        }
    }

    /** The phone's receiver has the speed that the node's trial wants, at 10 Hz. */
    private fun inTheCar() {
        val client = AgentClient(field.pairing("alpha"), phone, Dispatchers.IO)
        scope.launch { AgentLink(client, System::nanoTime).follow().collect(instrument::heard) }
        scope.launch { pushFixes(fixes, client, System::nanoTime, instrument::pushed) }
        scope.launch {
            var lon = ROADSIDE_LON_DEG
            while (true) {
                val wanted = instrument.state.value.drive.takeIf { it.phase.isUnderWay }?.band?.targetMps ?: 0.0
                val speed = if (isDriving) RANGE_MPS else wanted
                lon += speed * 0.1 / 100_000
                val fix = Fix(
                    System.nanoTime(), mode = 3, utcMs = System.currentTimeMillis(), latDeg = -26.682, lonDeg = lon,
                    speedMps = speed, trackDeg = 90.0, speedErrMps = 0.1, horizErrM = 3.0, satellitesUsed = 11,
                )
                fixes.emit(fix)
                instrument.fix(fix)
                delay(100)
            }
        }
    }

    /** As a person on the screen, on the app's one thread. */
    private suspend fun on(does: Experiment.() -> Unit) = withContext(one) { experiment.does() }

    private suspend fun reach(what: String, holds: (ExperimentState) -> Boolean): ExperimentState = try {
        withTimeout(PATIENCE_MS) { experiment.state.first(holds) }
    } catch (e: TimeoutCancellationException) {
        throw AssertionError("waited in vain: $what", e)
    }

    private companion object {
        const val ROADSIDE_LON_DEG = 27.092
        const val RANGE_MPS = 5.0

        /** Far more than anything takes on a machine that is busy. */
        const val PATIENCE_MS = 180_000L
    }
}
