package dev.fieldmesh.core.real

import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.AgentLink
import dev.fieldmesh.core.agent.AttachmentSink
import dev.fieldmesh.core.agent.Attachments
import dev.fieldmesh.core.agent.Clocks
import dev.fieldmesh.core.agent.Outbox
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.agent.Shelf
import dev.fieldmesh.core.agent.Taken
import dev.fieldmesh.core.agent.WaitingNote
import dev.fieldmesh.core.agent.pushFixes
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.Instrument
import dev.fieldmesh.core.app.Standing
import dev.fieldmesh.core.cue.Cue
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.drive.Phase
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.core.wire.AbortRequest
import dev.fieldmesh.core.wire.AttachmentHeld
import dev.fieldmesh.core.wire.AttachmentPut
import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.Verdict
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.cancel
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import java.io.File
import java.nio.file.Files
import java.util.concurrent.Executors
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue

/**
 * The app's own code, from the socket to the screens' state and the cues,
 * against two real agents through real trials; the script agent-test sets the
 * stage. The car's node has no GPS but the fixes that the app pushes: they open
 * the gate, or it stays shut.
 */
class AgentTest {
    private val field = Field(File(System.getProperty("fieldmesh.field")), System.getProperty("fieldmesh.namespaces"))
    private val one = Executors.newSingleThreadExecutor().asCoroutineDispatcher()
    private val scope = CoroutineScope(one)
    private val said = mutableListOf<Cue>()
    private val instrument = Instrument(System::nanoTime) { cue, _ -> said += cue }
    private val fixes = MutableSharedFlow<Fix>(replay = 1)

    @Volatile private var speed = 0.0

    @AfterTest
    fun end() {
        scope.cancel()
        one.close()
        field.stop()
    }

    @Test
    fun `through two trials, with a key that is not known, an agent that is killed and a network that fails`() =
        runBlocking {
            try {
                story()
            } catch (e: Throwable) {
                println("state: ${instrument.state.value}\nsaid: $said\n${field.log()}")
                throw e
            }
        }

    private suspend fun story() {
        val phone = newIdentity("app")
        field.letIn("car", phone.pin)
        field.letIn("roadside", phone.pin)
        listOf("car", "roadside").forEach(field::start)
        val client = AgentClient(field.pairing("car"), phone, Dispatchers.IO)
        follow(client)
        reach("the node is there") { it.drive.link == LinkState.UP && it.node != null }
        wrongKeys()

        drive(client)
        load()
        val loaded = reach("the run is there") { it.campaign?.rows?.size == 3 && it.drive.phase == Phase.IDLE }
        assertEquals(Standing.NEXT, loaded.campaign!!.rows[0].standing)
        reach("the roadside's place is known") {
            it.track.peers.any { peer -> peer.node == "roadside" && peer.ageS >= 3 }
        }

        firstTrial(client)
        killedInTheSecond(client)
        networkGoneInTheThird(client)
    }

    /** Armed, too slow, in band, GO by the pushed fixes alone, done: again where the machine was late. */
    private suspend fun firstTrial(client: AgentClient) {
        val done = (1..ATTEMPTS_MAX).firstNotNullOf { attempt ->
            firstAttempt(attempt).takeUnless { spoiled(it.drive.verdict) && attempt < ATTEMPTS_MAX }
        }
        assertEquals("accepted", done.drive.verdict?.outcome, "${done.drive.verdict}")
        assertEquals(Standing.ACCEPTED, done.campaign!!.rows[0].standing)
        assertContains(said, Cue.TARGET)
        assertContains(said, Cue.GO)
        awaitSaid(Cue.DONE)
        marks(client)
        photo(client)
    }

    private suspend fun firstAttempt(attempt: Int): AppState {
        speed = 0.0
        arm(1, attempt)
        val armed = reach("attempt $attempt is armed") {
            it.drive.phase == Phase.ARMED && it.drive.band != null && it.drive.key?.attempt == attempt
        }
        assertEquals(13.9, armed.drive.band!!.targetMps)
        speed = 9.0
        reach("the car is too slow") { it.drive.zone == dev.fieldmesh.core.cue.Zone.BELOW }
        awaitSaid(Cue.FASTER) // the target is said before it
        speed = 13.9
        val isDone = { state: AppState -> state.drive.phase == Phase.DONE && state.drive.key?.attempt == attempt }
        reach("the window is open") {
            it.drive.phase == Phase.RUNNING && it.drive.remainingS != null || isDone(it) && spoiled(it.drive.verdict)
        }
        return reach("attempt $attempt is done", isDone)
    }

    private suspend fun marks(client: AgentClient) {
        val shelf = object : Shelf {
            var text: String? = null
            override fun load() = text
            override fun save(text: String) {
                this.text = text
            }
        }
        val outbox = Outbox(shelf, Clocks(System::nanoTime, System::currentTimeMillis) { 1 })
        val note = outbox.add { id -> Note(id, "mark", "bus passed", 0.0, "app-test", 1, 1, -26.682, 27.092) }
        client.note(note) // its answer is lost, so it is sent again
        val delivering = scope.launch { outbox.deliver(client) {} }
        withTimeout(PATIENCE_MS) { while (outbox.pending.isNotEmpty()) delay(20) }
        delivering.cancel()
        assertEquals("[]", shelf.text)
        val records = generateSequence<dev.fieldmesh.core.agent.RecordPage>({
            runBlocking { client.records(null, 10_000) }
        }) { page ->
            runBlocking { client.records(page.position, 10_000) }.takeIf { it.lines.isNotEmpty() }
        }.flatMap { it.lines }.toList()
        assertEquals(
            1,
            records.count {
                it.contains("\"kind\":\"note\"") && it.contains("bus passed")
            },
            "sent twice it is one record",
        )
        assertTrue(
            records.any {
                it.contains("\"kind\":\"gps\"") && it.contains("\"speed_mps\":13.9")
            },
            "the pushed fixes are in the trial's records",
        )
    }

    private val photo = String(CharArray(1_000_000) { 'a' + it * 7 % 26 })

    /** A photo reaches the node whole over a control link that is cut in the middle of it. */
    private suspend fun photo(client: AgentClient) {
        val folder = Files.createTempDirectory("photo").toFile()
        val waiting = Attachments(folder)
        val note = Note("photo-1", "mark", "the antenna", 0.0, "app-test", 1, 1)
        val clocks = Clocks(System::nanoTime, System::currentTimeMillis) { 1 }
        val taken = Taken(WaitingNote(note, clocks.bootNs(), clocks.utcMs(), 1), "image/jpeg")
        waiting.begin(taken)
        waiting.file(taken).writeText(photo)
        val sha256 = checkNotNull(waiting.ready(taken).note.attachment).sha256 // the node does not know of its note
        var isCut = false
        val cutting = object : AttachmentSink by client {
            override suspend fun putAttachment(piece: AttachmentPut): AttachmentHeld {
                if (piece.offset > 400_000 && !isCut) {
                    isCut = true
                    field.cut("car")
                    scope.launch {
                        delay(1000)
                        field.mend("car")
                    }
                }
                return client.putAttachment(piece)
            }
        }
        val delivering = scope.launch { waiting.deliver(cutting, clocks) { false } }
        withTimeout(PATIENCE_MS) { waiting.waiting.first { it.count == 0 } }
        delivering.cancel()
        assertTrue(isCut)
        val path = "/v1/attachments/data?sha256=$sha256"
        assertEquals(photo, field.call("car", "GET", path), "the controller gets what the camera took")
        folder.deleteRecursively()
    }

    private suspend fun noPhotoNow(client: AgentClient) {
        val refused = assertFailsWith<AgentException.Refused> { client.attachment("0".repeat(64)) }
        assertEquals("busy", refused.error.code)
    }

    private suspend fun killedInTheSecond(client: AgentClient) {
        speed = 5.0
        arm(2)
        reach("trial 2 is armed") { it.drive.phase == Phase.ARMED && it.drive.key?.trial == 2 }
        noPhotoNow(client)
        field.killFace("car")
        // It may be back before anybody has missed it; that it is missed is shown below.
        val back = reach("it is back, the attempt interrupted") {
            it.drive.link == LinkState.UP &&
                it.drive.phase == Phase.DONE &&
                it.drive.key?.trial == 2
        }
        // Before the car's node goes on alone: that attempt used up none.
        for (node in listOf(
            "car",
            "roadside",
        )) {
            field.call(node, "PUT", "/v1/lease", """{"holder":"test","ttl_s":120}""")
        }
        // The roadside still waits for its GO: a controller has it leave that attempt, too.
        field.call(
            "roadside",
            "POST",
            "/v1/runs/app-test/abort",
            """{"trial":2,"attempt":1,"reason":"the car has left it"}""",
        )
        assertEquals("interrupted", back.drive.verdict?.outcome)
        awaitSaid(Cue.INTERRUPTED)
    }

    private suspend fun networkGoneInTheThird(client: AgentClient) {
        arm(3)
        reach("trial 3 is armed") { it.drive.phase == Phase.ARMED && it.drive.key?.trial == 3 }
        field.cut("car")
        reach("the network is gone, and the screen says so") {
            it.drive.link == LinkState.LOST &&
                it.drive.staleSinceNs != null
        }
        awaitSaid(Cue.NODE_LOST)
        field.mend("car")
        reach("it is back in the same trial") {
            it.drive.link == LinkState.UP &&
                it.drive.phase == Phase.ARMED &&
                it.drive.key?.trial == 3
        }
        client.abort("app-test", AbortRequest(3, 1, "by hand, on the phone"))
        val done = reach("trial 3 is aborted") { it.drive.phase == Phase.DONE && it.drive.key?.trial == 3 }
        assertEquals("interrupted", done.drive.verdict?.outcome)
        assertContains(done.drive.verdict?.reason.orEmpty(), "by hand")
        client.restore()
        assertEquals(emptyList(), client.status().host.pending)
    }

    private suspend fun wrongKeys() {
        val pairing = field.pairing("car")
        assertFailsWith<AgentException.NotPaired> {
            AgentClient(pairing, newIdentity("stranger"), Dispatchers.IO).status()
        }
        val other = Pairing(pairing.host, pairing.port, Pin("0".repeat(64)))
        assertFailsWith<AgentException.WrongNode> {
            AgentClient(other, newIdentity("stranger"), Dispatchers.IO).status()
        }
    }

    private fun follow(client: AgentClient) {
        scope.launch { AgentLink(client, System::nanoTime).follow().collect(instrument::heard) }
        scope.launch {
            while (true) {
                instrument.refresh()
                delay(100)
            }
        }
    }

    /** The phone's receiver, at 10 Hz. */
    private fun drive(client: AgentClient) {
        scope.launch { pushFixes(fixes, client, System::nanoTime, instrument::pushed) }
        scope.launch {
            var lon = 27.092
            while (true) {
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

    private fun load() = listOf("car", "roadside").forEach { node ->
        val places = """[{"node":"roadside","lat_deg":-26.682,"lon_deg":27.092,"age_ms":3000}]"""
        field.call(node, "PUT", "/v1/lease", """{"holder":"test","ttl_s":120,"places":$places}""")
        field.call(node, "PUT", "/v1/runs/app-test", plan())
    }

    /** One of the nodes may still be ending the trial before: it is asked again, as the controller does. */
    private suspend fun arm(trial: Int, attempt: Int = 1) = listOf("roadside", "car").forEach { node ->
        withTimeout(60_000) {
            while (runCatching { armOne(node, trial, attempt) }.onFailure {
                    if ("\"busy\"" !in
                        it.message.orEmpty()
                    ) {
                        throw it
                    }
                }.isFailure
            ) {
                delay(200)
            }
        }
    }

    private fun armOne(node: String, trial: Int, attempt: Int) =
        field.call(node, "POST", "/v1/runs/app-test/arm", """{"trial":$trial,"attempt":$attempt}""")

    private fun plan(): String {
        val trials = (1..3).joinToString(",") { n ->
            """{"number":$n,"block":1,"repetition":1,"factors":{"speed_mps":"13.9"},"car":"car","roadside":"roadside","sender":"car","receiver":"roadside",
            "initiator":"car","speed_mps":13.9,"direction":"outbound","course":{"kind":"depart","start_m":0,"offset_m":5,"accel_mps2":1.8,"brake_mps2":2.5,"heading_deg":90},
            "gate":{"speed_band":true,"hold_s":1,"timeout_s":90,"lead_s":0.5},"duration_s":8,"radio":{"mode":"none"},"routing":{"protocol":"none"},"tcp":{"variant":"reno"},
            "traffic":[{"name":"main","kind":"iperf3_tcp","from":"car","to":"roadside","port":5201,"streams":1,"start_s":0,"duration_s":8,"client_port":${50000 + n * 10}}],
            "acceptance":{"speed_band_mps":0.5,"in_band_share_min":0.5}}"""
        }
        return """{"run":"app-test","campaign":"app","campaign_sha256":"${"0".repeat(
            64,
        )}","seed":1,"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
            "nodes":[{"name":"car","mesh_prefix":"10.77.0.1/24","go_port":7446},{"name":"roadside","mesh_prefix":"10.77.0.2/24","go_port":7446}],
            "trials":[$trials],"attempts_max":$ATTEMPTS_MAX}"""
    }

    private suspend fun reach(what: String, holds: (AppState) -> Boolean): AppState = try {
        withTimeout(PATIENCE_MS) { instrument.state.first(holds) }
    } catch (e: kotlinx.coroutines.TimeoutCancellationException) {
        throw AssertionError("waited in vain: $what; last: ${instrument.state.value.drive}", e)
    }

    private suspend fun awaitSaid(cue: Cue) = withTimeout(PATIENCE_MS) { while (cue !in said.toList()) delay(50) }

    /** Whether a busy machine has spoiled the attempt: as `testnet.Late` has it for the tests in Go. */
    private fun spoiled(verdict: Verdict?) =
        listOf("stalled: ", " ms late", "nobody knows which of them", " ms within the window", "go_unanswered: ")
            .any { it in verdict?.reason.orEmpty() }

    private companion object {
        /** Far more than anything takes on a machine that is busy. */
        const val PATIENCE_MS = 90_000L
        const val ATTEMPTS_MAX = 6
    }
}
