package dev.fieldmesh.core

import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.gps.GpsdServer
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import java.net.InetAddress
import java.net.Socket
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals

class GpsdServerTest {
    private val fix = Fix(
        bootNs = 1, mode = 3, utcMs = 1_767_225_600_100, latDeg = -26.682, lonDeg = 27.092,
        speedMps = 13.9, trackDeg = 87.5, speedErrMps = 0.3, horizErrM = 3.4, satellitesUsed = 11,
    )

    @Test
    fun `a client watches and reads fixes, and a cancelled server is gone`() = runBlocking(Dispatchers.IO) {
        val fixes = MutableSharedFlow<Fix>(replay = 1)
        val server = GpsdServer(fixes, Dispatchers.IO, port = 0)
        val job = launch { server.run() }
        Socket(InetAddress.getLoopbackAddress(), server.port).use { socket ->
            val lines = socket.getInputStream().bufferedReader()
            assertEquals("VERSION", kind(lines.readLine()))
            socket.getOutputStream().write("?WATCH={\"enable\":true,\"json\":true};\n".toByteArray())
            assertEquals(listOf("DEVICES", "WATCH"), List(2) { kind(lines.readLine()) })
            fixes.subscriptionCount.first { it > 0 }
            fixes.emit(fix)
            val tpv = lines.readLine()
            assertContains(tpv, "\"speed\":13.9")
            assertContains(tpv, "\"time\":\"2026-01-01T00:00:00.100Z\"")
            assertEquals("SKY", kind(lines.readLine()))
            fixes.emit(Fix.none(2))
            assertContains(lines.readLine(), "\"mode\":1")
            job.cancelAndJoin()
            assertEquals(null, lines.readLine(), "the connection ends with the server")
        }
    }

    @Test
    fun `nonsense is answered and harms nobody`() = runBlocking(Dispatchers.IO) {
        val server = GpsdServer(MutableSharedFlow(replay = 1), Dispatchers.IO, port = 0)
        val job = launch { server.run() }
        for (text in listOf(
            "GET / HTTP/1.1\r\n",
            "?WATCH={;\n",
            "?WATCH=[];\n",
            "?NOTHING;\n",
            "?POLL;\n",
            "?VERSION;",
        )) {
            Socket(InetAddress.getLoopbackAddress(), server.port).use { socket ->
                val lines = socket.getInputStream().bufferedReader()
                lines.readLine()
                socket.getOutputStream().write(text.toByteArray())
                val expected = if ("POLL" in text) {
                    "POLL"
                } else if ("VERSION" in text) {
                    "VERSION"
                } else {
                    "ERROR"
                }
                assertEquals(expected, kind(lines.readLine()), text)
            }
        }
        job.cancelAndJoin()
    }

    @Test
    fun `a client that does not read holds up nobody`() = runBlocking(Dispatchers.IO) {
        val fixes = MutableSharedFlow<Fix>(replay = 1)
        val server = GpsdServer(fixes, Dispatchers.IO, port = 0)
        val job = launch { server.run() }
        Socket(InetAddress.getLoopbackAddress(), server.port).use { idle ->
            idle.getOutputStream().write("?WATCH={\"enable\":true,\"json\":true};\n".toByteArray())
            fixes.subscriptionCount.first { it > 0 }
            val done = CompletableDeferred<Unit>()
            launch {
                repeat(20_000) { fixes.emit(fix.copy(bootNs = it.toLong())) }
                done.complete(Unit)
            }
            done.await()
        }
        job.cancelAndJoin()
    }

    private fun kind(line: String) = Json.parseToJsonElement(line).jsonObject.getValue("class").jsonPrimitive.content
}
