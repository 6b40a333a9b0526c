package dev.fieldmesh.core

import com.sun.net.httpserver.HttpExchange
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.ControllerClient
import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.join
import dev.fieldmesh.core.wire.Choice
import dev.fieldmesh.core.wire.RunRequest
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.BeforeClass
import java.io.File
import java.nio.file.Files
import java.security.MessageDigest
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** Against a TLS server of the JDK; the real `fieldmesh serve` has a profile of its own. */
class ControllerClientTest {
    private val asked = CopyOnWriteArrayList<String>()
    private var answer: (HttpExchange) -> Unit = { it.send(200, RUN) }
    private val server = TlsServer(controller, app) {
        asked += "${it.requestMethod} ${it.requestURI} ${it.requestBody.reader().readText()}".trim()
        answer(it)
    }
    private val at = Pairing("127.0.0.1", server.port, controller.pin)
    private val client = ControllerClient(at, app, Dispatchers.IO)
    private val folder: File = Files.createTempDirectory("files").toFile()

    @AfterTest
    fun stop() {
        server.close()
        folder.deleteRecursively()
    }

    @Test
    fun `what is absent in a choice is not sent, and what is there is`() = runBlocking {
        client.start(RunRequest("velocity-1129-141233", Choice("velocity")))
        client.start(RunRequest("velocity-1", Choice("velocity", "smoke", listOf(2.8, 13.889), 2)))
        val body = """{"name":"velocity-1129-141233","choice":{"campaign":"velocity"}}"""
        assertEquals("POST /v1/runs $body", asked[0])
        val chosen = """{"campaign":"velocity","scale":"smoke","speeds_mps":[2.8,13.889],"repetitions":2}"""
        assertEquals("""POST /v1/runs {"name":"velocity-1","choice":$chosen}""", asked[1])
    }

    @Test
    fun `a run is steered by its name, and read`() = runBlocking {
        val run = client.steer("velocity-1", "pause")
        client.steer("velocity-1", "resume")
        client.steer("velocity-1", "end")
        assertEquals(listOf("pause", "resume", "end").map { "POST /v1/runs/velocity-1/$it" }, asked)
        assertEquals(3 to 24, run.accepted to run.trials)
        assertEquals(1.42e7, run.sheet?.speeds?.single()?.meanBps)
        assertNull(run.said)
    }

    @Test
    fun `runs are waited for by their version`() = runBlocking {
        answer = { it.send(200, """{"version":17,"runs":[$RUN]}""") }
        assertEquals(17uL, client.runs(null, 25_000).version)
        client.runs(17uL, 25_000)
        assertEquals(listOf("GET /v1/runs", "GET /v1/runs?known=17&wait_ms=25000"), asked)
    }

    @Test
    fun `who is no experimenter is told apart from a refusal`(): Unit = runBlocking {
        answer = { it.send(403, """{"code":"forbidden","message":"the key is no experimenter's"}""") }
        assertFailsWith<AgentException.NotPaired> { client.campaigns() }
        answer = { it.send(409, """{"code":"conflict","message":"run velocity-1 is under way"}""") }
        val refused = assertFailsWith<AgentException.Refused> { client.start(RunRequest("v", Choice("velocity"))) }
        assertEquals("conflict", refused.error.code)
    }

    @Test
    fun `a file is there when all of it has come`() = runBlocking {
        val to = File(folder, "velocity-1/report.html")
        answer = { it.send(200, "<html>ü</html>") }
        client.fetch("velocity-1", "report.html", to)
        assertEquals("<html>ü</html>", to.readText())
        answer = {
            it.sendResponseHeaders(200, 100)
            it.responseBody.write("half".toByteArray())
            it.close()
        }
        assertFailsWith<AgentException.Unreachable> { client.fetch("velocity-1", "report.html", to) }
        assertEquals("<html>ü</html>", to.readText(), "what came before stays")
        answer = { it.send(404, """{"code":"not_found","message":"no run velocity-2"}""") }
        val other = File(folder, "velocity-2/report.html")
        assertFailsWith<AgentException.Refused> { client.fetch("velocity-2", "report.html", other) }
        assertFalse(other.exists())
    }

    @Test
    fun `a file without an end does not fill the phone`() = runBlocking {
        val bounded = ControllerClient(at, app, Dispatchers.IO, mostFileBytes = 1_000_000)
        val to = File(folder, "velocity-1/report.html")
        fun bytes(n: Int) {
            answer = {
                it.sendResponseHeaders(200, 0)
                runCatching { it.responseBody.write(ByteArray(n)) }
                it.close()
            }
        }
        bytes(1_000_001)
        assertFailsWith<AgentException.BadAnswer> { bounded.fetch("velocity-1", "report.html", to) }
        assertEquals(emptyList(), to.parentFile.list()?.toList())
        bytes(1_000_000)
        bounded.fetch("velocity-1", "report.html", to)
        assertEquals(1_000_000, to.length())
    }

    @Test
    fun `a file that cannot be kept is told apart from a controller that does not answer`() = runBlocking {
        answer = { it.send(200, "<html></html>") }
        File(folder, "velocity-1").writeText("no folder")
        val to = File(folder, "velocity-1/report.html")
        assertFailsWith<AgentException.Unstored> { client.fetch("velocity-1", "report.html", to) }
        assertTrue(File(folder, "velocity-2/report.html/taken").mkdirs())
        val taken = File(folder, "velocity-2/report.html")
        assertFailsWith<AgentException.Unstored> { client.fetch("velocity-2", "report.html", taken) }
        assertEquals(listOf("report.html"), File(folder, "velocity-2").list()?.toList(), "no part of it stays")
    }

    @Test
    fun `a fetch that is cancelled ends at once, and leaves nothing`() = runBlocking {
        val begun = CountDownLatch(1)
        val over = CountDownLatch(1)
        answer = {
            it.sendResponseHeaders(200, 100)
            it.responseBody.write("half".toByteArray())
            it.responseBody.flush()
            begun.countDown()
            over.await(20, TimeUnit.SECONDS)
            it.close()
        }
        val to = File(folder, "velocity-1/report.html")
        val fetching = launch(Dispatchers.IO) { client.fetch("velocity-1", "report.html", to) }
        assertTrue(begun.await(10, TimeUnit.SECONDS))
        fun parts() = to.parentFile.listFiles().orEmpty().toList()
        // Half of it has come: only the cancelling ends that before the controller does.
        withTimeout(10_000) { while (parts().none { it.length() == 4L }) delay(10) }
        fetching.cancelAndJoin()
        withTimeoutOrNull(10_000) { while (parts().isNotEmpty()) delay(10) }
        assertEquals(emptyList(), parts())
        over.countDown()
    }

    @Test
    fun `the controller of an experimenter's code is kept with its key, and that of another's is not`() = runBlocking {
        val code = assertNotNull(PairingCode.parse(codeFor(server.port)))
        val proof = code.admits(controller.pin, app.pin, "phone", "app")
        val reply = """{"proof":"$proof","name":"phone","role":"app","nodes":[]"""
        answer = { it.send(200, """$reply,"controller":{"port":7448}}""") }
        val admitted = join(code, app, Dispatchers.IO)
        assertEquals(Pairing("127.0.0.1", 7448, controller.pin), admitted.controller)
        answer = { it.send(200, "$reply}") }
        assertNull(join(code, app, Dispatchers.IO).controller)
    }

    @Test
    fun `a node at an address that the app cannot call is named, and costs it no other`() = runBlocking {
        val code = assertNotNull(PairingCode.parse(codeFor(server.port)))
        val proof = code.admits(controller.pin, app.pin, "phone", "app")
        val pin = "ab".repeat(32)
        val nodes = listOf("alpha" to "192.168.1.5:7443", "bravo" to "[fe80::1%wlan0]:7443", "carol" to "roof_1:7443")
            .joinToString { (name, at) -> """{"name":"$name","address":"$at","pin":"$pin"}""" }
        answer = { it.send(200, """{"proof":"$proof","name":"phone","role":"app","nodes":[$nodes]}""") }
        val admitted = join(code, app, Dispatchers.IO)
        val near = admitted.nodes.map { it.name to it.pairing.host }
        assertEquals(listOf("alpha" to "192.168.1.5", "carol" to "roof_1"), near)
        assertEquals(listOf("bravo"), admitted.beyond)
    }

    /** As `fieldmesh keys pair` would write it; see protocols/pairing. */
    private fun codeFor(port: Int): String {
        val half = controller.pin.hex.take(32).chunked(2).map { it.toInt(16).toByte() }.toByteArray()
        val data = ByteArray(16) { it.toByte() } + half
        val check = MessageDigest.getInstance("SHA-256").digest(data).copyOf(3)
        val bits = (data + check).joinToString("") { (it.toInt() and 0xff).toString(2).padStart(8, '0') }
        val letters = bits.chunked(5).joinToString("") { "${"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[it.toInt(2)]}" }
        return "FIELDMESH-PAIR/127.0.0.1:$port/$letters"
    }

    companion object {
        private lateinit var controller: Identity
        private lateinit var app: Identity

        @JvmStatic
        @BeforeClass
        fun makeKeys() {
            controller = newIdentity("controller")
            app = newIdentity("app")
        }

        private const val RUN = """{"name":"velocity-1","campaign":"velocity","place":"road","phase":"running",
            "trials":24,"accepted":3,"given_up":0,"left_s":1200.5,
            "sheet":{"speeds":[{"speed_mps":2.8,"mean_bps":1.42e7,"n":3}]}}"""
    }
}
