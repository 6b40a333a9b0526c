package dev.fieldmesh.core.real

import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.gps.GpsdServer
import dev.fieldmesh.core.newIdentity
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.double
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import java.io.File
import java.util.concurrent.TimeUnit
import kotlin.math.abs
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** The server of gpsd's protocol, read by gpsd's own client and by the agent's GPS package. */
class GpsReadersTest {
    private val speeds = listOf(2.8, 8.3, 13.9, 16.7)

    @Test
    fun `gpspipe reads the speeds of a drive`() = runBlocking(Dispatchers.IO) {
        val fixes = MutableSharedFlow<Fix>(replay = 1)
        val server = GpsdServer(fixes, Dispatchers.IO, port = 0)
        val serving = launch { server.run() }
        val driving = launch { drive(fixes) { speeds[it / 5 % speeds.size] } }
        val pipe = ProcessBuilder(
            "gpspipe",
            "-w",
            "-n",
            "60",
            "127.0.0.1:${server.port}",
        ).redirectErrorStream(true).start()
        val text = pipe.inputStream.reader().readText()
        assertTrue(pipe.waitFor(30, TimeUnit.SECONDS))
        driving.cancelAndJoin()
        serving.cancelAndJoin()
        val told = text.lines().filter {
            it.contains("\"TPV\"")
        }.map { Json.parseToJsonElement(it).jsonObject.getValue("speed").jsonPrimitive.double }
        assertTrue(told.size >= 50, text)
        assertEquals(speeds.toSet(), told.toSet())
    }

    @Test
    fun `the agent's GPS package reads the speeds of a drive`() = runBlocking(Dispatchers.IO) {
        val field = Field(File(System.getProperty("fieldmesh.field")), System.getProperty("fieldmesh.namespaces"))
        val app = newIdentity("app")
        field.letIn("reader", app.pin)
        val fixes = MutableSharedFlow<Fix>(replay = 1)
        val server = GpsdServer(fixes, Dispatchers.IO)
        val serving = launch { server.run() }
        var speed = 0.0
        val driving = launch { drive(fixes) { speed } }
        try {
            field.start("reader")
            val client = AgentClient(field.pairing("reader"), app, Dispatchers.IO)
            for (mps in speeds) {
                speed = mps
                withTimeout(PATIENCE_MS) { while (abs((readSpeed(client) ?: -1.0) - mps) > 0.1) delay(100) }
            }
        } finally {
            driving.cancelAndJoin()
            serving.cancelAndJoin()
            field.stop()
        }
    }

    private suspend fun readSpeed(client: AgentClient): Double? = try {
        client.status().gps?.speedMps
    } catch (_: AgentException) {
        null // not started yet
    }

    private suspend fun drive(fixes: MutableSharedFlow<Fix>, speed: (Int) -> Double) {
        val startNs = System.nanoTime()
        val startMs = System.currentTimeMillis()
        var n = 0
        while (true) {
            val ns = System.nanoTime()
            fixes.emit(
                Fix(
                    ns,
                    3,
                    utcMs = startMs + (ns - startNs) / 1_000_000,
                    latDeg = -26.682,
                    lonDeg = 27.092 + n * 1e-5,
                    speedMps = speed(n),
                    trackDeg = 90.0,
                ),
            )
            n++
            delay(100)
        }
    }

    private companion object {
        const val PATIENCE_MS = 60_000L
    }
}
