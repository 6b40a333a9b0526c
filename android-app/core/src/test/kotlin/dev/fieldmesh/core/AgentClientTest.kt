package dev.fieldmesh.core

import com.sun.management.ThreadMXBean
import com.sun.net.httpserver.HttpExchange
import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Caller
import dev.fieldmesh.core.agent.Finder
import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.agent.Seeker
import dev.fieldmesh.core.agent.Subnet
import dev.fieldmesh.core.agent.Way
import dev.fieldmesh.core.agent.addressOf
import dev.fieldmesh.core.agent.read
import dev.fieldmesh.core.wire.AbortRequest
import dev.fieldmesh.core.wire.NodeStatus
import dev.fieldmesh.core.wire.PushedFix
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.emptyFlow
import kotlinx.coroutines.runBlocking
import okhttp3.Protocol
import okhttp3.Request
import okhttp3.Response
import okhttp3.ResponseBody.Companion.asResponseBody
import okio.Buffer
import org.junit.BeforeClass
import java.io.File
import java.io.IOException
import java.lang.management.ManagementFactory
import java.net.InetAddress
import java.net.Socket
import java.time.Duration
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import java.util.zip.GZIPOutputStream
import javax.net.SocketFactory
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** Against a TLS server of the JDK; the real agent has a profile of its own. */
class AgentClientTest {
    private var answer: (HttpExchange) -> Unit = { it.send(200, golden("body_node_status")) }
    private val server = TlsServer(node, app) { answer(it) }

    private fun client(pin: Pin = node.pin, identity: Identity = app) = AgentClient(
        Pairing("127.0.0.1", server.port, pin),
        identity,
        Dispatchers.IO,
        timeout = Duration.ofMinutes(1),
    )

    private val seeker = Seeker(Finder { emptyFlow() })

    @AfterTest
    fun stop() {
        server.close()
    }

    @Test
    fun `a node's status is read`() = runBlocking {
        assertEquals("car", client().status().node)
    }

    @Test
    fun `a node with another key is not talked to`(): Unit = runBlocking {
        assertFailsWith<AgentException.WrongNode> { client(pin = stranger.pin).status() }
    }

    @Test
    fun `without a known key there is no answer, and without a node neither`(): Unit = runBlocking {
        assertFailsWith<AgentException> { client(identity = stranger).status() }
        server.close()
        assertFailsWith<AgentException.Unreachable> { client().status() }
    }

    @Test
    fun `a refusal keeps the node's word and cure`() = runBlocking {
        answer = { it.send(409, """{"code":"lease_held","message":"steered by another","cure":"wait"}""") }
        val refused = assertFailsWith<AgentException.Refused> { client().status() }
        assertEquals("lease_held", refused.error.code)
        assertEquals("wait", refused.error.cure)
    }

    @Test
    fun `an answer that is none is no crash`(): Unit = runBlocking {
        for ((status, text) in listOf(200 to "{", 200 to "[]", 500 to "oh", 200 to "")) {
            answer = { it.send(status, text) }
            assertFailsWith<AgentException.BadAnswer> { client().status() }
        }
    }

    @Test
    fun `no answer is unpacked`(): Unit = runBlocking {
        var asked: String? = null
        answer = {
            asked = it.requestHeaders.getFirst("Accept-Encoding")
            it.responseHeaders.add("Content-Encoding", "gzip")
            it.sendResponseHeaders(200, 0)
            GZIPOutputStream(it.responseBody).use { packed -> packed.write(golden("body_node_status").toByteArray()) }
        }
        assertFailsWith<AgentException.BadAnswer> { client().status() }
        assertEquals("identity", asked)
    }

    @Test
    fun `an answer of more than 24 MiB is not read, nor is such a refusal`(): Unit = runBlocking {
        for (status in listOf(200, 409)) {
            answer = {
                it.sendResponseHeaders(status, 0)
                val text = golden(if (status == 200) "body_node_status" else "body_error").toByteArray()
                // The client hangs up.
                runCatching {
                    repeat(25) { _ -> it.responseBody.write(ByteArray(1 shl 20) { ' '.code.toByte() }) }
                    it.responseBody.write(text)
                }
                it.close()
            }
            val e = assertFailsWith<AgentException.BadAnswer> { client().status() }
            assertContains(e.message.orEmpty(), "24 MiB")
        }
    }

    @Test
    fun `an answer's text is not in memory as a whole`() {
        val all = Buffer()
        repeat(20) { all.write(ByteArray(1 shl 20) { ' '.code.toByte() }) }
        all.writeUtf8(golden("body_node_status"))
        val response = Response.Builder().request(Request.Builder().url("https://car.test/").build()).code(200)
            .protocol(Protocol.HTTP_1_1).message("").body(all.asResponseBody(null, -1)).build()
        val threads = ManagementFactory.getThreadMXBean() as ThreadMXBean
        val own = Thread.currentThread().id
        val before = threads.getThreadAllocatedBytes(own)
        response.read(NodeStatus.serializer())
        val mib = (threads.getThreadAllocatedBytes(own) - before) / (1 shl 20)
        assertTrue(mib < 5, "$mib MiB were taken to read an answer of 20 MiB")
    }

    @Test
    fun `a call goes over the way of its moment, and no connection is taken over from another`() = runBlocking {
        val (first, second) = List(2) { Counted() }
        var way = first.way
        val caller = Caller({ app }, Dispatchers.IO, seeker) { way }
        val client = caller.client(Pairing("car.test", server.port, node.pin))
        client.status()
        assertEquals(1 to 0, first.made.get() to second.made.get())
        way = second.way
        client.status()
        assertEquals(1 to 1, first.made.get() to second.made.get())
        assertEquals(listOf("car.test"), second.asked.toList())
    }

    @Test
    fun `who does not answer over one way is called over the other, and there first from then on`() = runBlocking {
        val second = Counted()
        val first = Counted(second.way, isDead = true)
        var way = first.way
        val client = Caller({ app }, Dispatchers.IO, seeker) { way }.client(Pairing("car.test", server.port, node.pin))
        repeat(2) { client.status() }
        assertEquals(1 to 1, first.made.get() to second.made.get())
        way = Counted(Counted(isDead = true).way).way
        client.status() // a way that has come is tried first, and the other is not needed
        way = Counted(Counted().way, isDead = true).way
        assertFailsWith<AgentException.Unreachable>("a fix has no time for it") {
            client.pushFix(PushedFix(ageMs = 0.0, mode = 1))
        }
        way = Counted(Counted(isDead = true).way, isDead = true).way
        val why = assertFailsWith<AgentException.Unreachable> { client.status() }
        assertContains(why.message.orEmpty(), "is gone")
    }

    @Test
    fun `another than the peer at its address is no reason to stop, and a refusal is`() = runBlocking {
        val second = Counted(isDead = true)
        val client = { pin: Pin -> Pairing("car.test", server.port, pin) }
        val caller = Caller({ app }, Dispatchers.IO, seeker) { Counted(second.way).way }
        assertFailsWith<AgentException.WrongNode> { caller.client(client(Pin("cd".repeat(32)))).status() }
        assertEquals(1, second.made.get())
        answer = { it.send(409, golden("body_error")) }
        assertFailsWith<AgentException.Refused> { caller.client(client(node.pin)).status() }
        assertEquals(1, second.made.get())
    }

    @Test
    fun `a network has its neighbours, and no others`() {
        val cable = Subnet("rndis0", InetAddress.getByName("192.168.42.129"), 25)
        val hosts = listOf("192.168.42.128", "192.168.42.255", "192.168.42.127", "192.168.43.129", "::c0a8:2a81")
        assertEquals(listOf(true, true, false, false, false), hosts.map { assertNotNull(addressOf(it)) in cable })
        val six = Subnet("wlan0", InetAddress.getByName("fd00:1::5"), 64)
        assertEquals(listOf(true, false), listOf("fd00:1::9", "fd00:2::9").map { assertNotNull(addressOf(it)) in six })
        for (name in listOf("car.test", "1.2.3", "256.1.1.1", "1.2.3.4.", "a:b")) assertNull(addressOf(name), name)
    }

    @Test
    fun `a code's controller is asked over the way of the moment`() = runBlocking {
        val sockets = Counted()
        val letters = "AAAQEAYEAUDAOCAJBIFQYDIOB4ASGRLHRGV433YBENCWPCNLZXXXATD3"
        val code = assertNotNull(PairingCode.parse("FIELDMESH-PAIR/desk.test:${server.port}/$letters"))
        assertFailsWith<AgentException.WrongNode> { Caller({ app }, Dispatchers.IO, seeker) { sockets.way }.join(code) }
        assertEquals(1, sockets.made.get())
        assertEquals(listOf("desk.test"), sockets.asked.toList())
    }

    /** A network in which every name is this machine's, and that counts its sockets; a dead one makes none. */
    private class Counted(otherwise: Way? = null, private val isDead: Boolean = false) : SocketFactory() {
        val made = AtomicInteger()
        val asked = CopyOnWriteArrayList<String>()
        val way = Way(this, otherwise) { host ->
            asked += host
            listOf(InetAddress.getLoopbackAddress())
        }

        override fun createSocket(): Socket {
            made.incrementAndGet()
            return if (isDead) throw IOException("the network is gone") else Socket()
        }

        override fun createSocket(host: String?, port: Int) = throw UnsupportedOperationException()

        override fun createSocket(host: String?, port: Int, from: InetAddress?, fromPort: Int) =
            throw UnsupportedOperationException()

        override fun createSocket(host: InetAddress?, port: Int) = throw UnsupportedOperationException()

        override fun createSocket(host: InetAddress?, port: Int, from: InetAddress?, fromPort: Int) =
            throw UnsupportedOperationException()
    }

    @Test
    fun `a fix that takes long to push is given up, because the node dates it by its arrival`(): Unit = runBlocking {
        answer = { Thread.sleep(60_000) }
        val startNs = System.nanoTime()
        assertFailsWith<AgentException.Unreachable> { client().pushFix(PushedFix(ageMs = 0.0, mode = 1)) }
        assertTrue(System.nanoTime() - startNs < 30_000_000_000, "the client's own limit is a minute")
    }

    @Test
    fun `an abort may take longer than other calls, since the node answers when the attempt is left`() = runBlocking {
        answer = {
            Thread.sleep(1500)
            it.send(200, golden("body_campaign_view"))
        }
        val second = Duration.ofSeconds(1)
        val client = AgentClient(Pairing("127.0.0.1", server.port, node.pin), app, Dispatchers.IO, timeout = second)
        assertEquals("velocity-1", client.abort("velocity-1", AbortRequest(2, 1, "by hand")).run)
    }

    @Test
    fun `a call that is cancelled ends at once`() = runBlocking {
        val asked = CountDownLatch(1)
        answer = {
            asked.countDown()
            Thread.sleep(60_000)
        }
        val call = async { client().view("run-1", known = 3uL, waitMs = 30_000) }
        assertTrue(kotlinx.coroutines.withContext(Dispatchers.IO) { asked.await(30, TimeUnit.SECONDS) })
        call.cancel()
        assertFailsWith<CancellationException> { call.await() }
        assertTrue(call.isCancelled)
    }

    @Test
    fun `a pairing line is read as people write it`() {
        val pin = "ab".repeat(32)
        assertEquals(
            Pairing("127.0.0.1", 7443, Pin(pin)),
            Pairing.parse(" fieldmesh:127.0.0.1:7443#\n${pin.uppercase()} "),
        )
        for (host in listOf("node.local", "192.168.1.2", "fe80::1")) {
            val pairing = Pairing(host, 7443, Pin(pin))
            assertEquals(pairing, Pairing.parse(pairing.toString()))
        }
        for (bad in listOf(
            "",
            "127.0.0.1:7443#$pin",
            "fieldmesh:h:0#$pin",
            "fieldmesh:h:99999#$pin",
            "fieldmesh:h:1#abc",
            "fieldmesh:h;x:1#$pin",
            "fieldmesh:192.168.1..5:7443#$pin",
            "fieldmesh:${"a".repeat(64)}.local:7443#$pin",
            "fieldmesh:[fd00::1::2]:7443#$pin",
            "fieldmesh:[1:2]:7443#$pin",
        )) {
            assertNull(Pairing.parse(bad), bad)
        }
    }

    companion object {
        private lateinit var node: Identity
        private lateinit var app: Identity
        private lateinit var stranger: Identity

        @JvmStatic
        @BeforeClass
        fun makeKeys() {
            node = newIdentity("car")
            app = newIdentity("app")
            stranger = newIdentity("stranger")
        }

        private fun golden(name: String) = File(System.getProperty("fieldmesh.golden"), "$name.json").readText()
    }
}
