package dev.fieldmesh.core.real

import dev.fieldmesh.core.TerminalPicture
import dev.fieldmesh.core.View
import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.join
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.core.scan.CodeReader
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import java.io.File
import java.util.concurrent.TimeUnit
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertTrue

/** The app's pairing with a real `fieldmesh keys pair`, and with a real agent that is told about it. */
class PairingTest {
    private val field = Field(File(System.getProperty("fieldmesh.field")), System.getProperty("fieldmesh.namespaces"))

    /** The controller's list of phones stands over those that were let in by hand, as in the other tests. */
    @AfterTest
    fun end() {
        field.stop()
        field.forgetApps("car")
    }

    @Test
    fun `a code makes the phone known to the nodes, once, and another code does not`() = runBlocking {
        val phone = newIdentity("app")
        field.giveKeys("car")
        field.start("car")
        // `keys pair` tells the nodes that answer at that moment; the others are `keys tell`'s.
        withTimeout(60_000) {
            while (runCatching { field.call("car", "GET", "/v1/node") }.isFailure) delay(200)
        }
        val offer = field.offer("second-phone")
        val shown = offer.code
        val scanned = CodeReader.read(TerminalPicture(offer.picture).seen(View(turnDeg = 5.0, noise = 10.0)))
        assertEquals(shown.replace("-", ""), scanned?.replace("-", ""), "the picture says the code")
        val code = assertNotNull(PairingCode.parse(scanned.orEmpty()), shown)

        val nodes = join(code, phone, Dispatchers.IO).nodes
        assertEquals(field.pairing("car"), nodes.single { it.name == "car" }.pairing)
        assertTrue(offer.process.waitFor(60, TimeUnit.SECONDS), "keys pair goes on")
        val client = AgentClient(nodes.single { it.name == "car" }.pairing, phone, Dispatchers.IO)
        withTimeout(60_000) {
            while (runCatching { client.status() }.getOrNull()?.node != "car") delay(200)
        }
        assertFailsWith<AgentException.Unreachable> { join(code, phone, Dispatchers.IO) }

        val again = field.offer("third-phone").code
        val other = assertNotNull(PairingCode.parse(again))
        assertTrue(other.port != code.port || other.host == code.host)
        val forged =
            assertNotNull(
                PairingCode.parse(
                    shown.replaceBefore("/", "FIELDMESH-PAIR").replace(":${code.port}/", ":${other.port}/"),
                ),
            )
        val refused = assertFailsWith<AgentException.Refused> { join(forged, phone, Dispatchers.IO) }
        assertEquals("code_wrong", refused.error.code)
    }
}
