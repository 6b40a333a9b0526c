package dev.fieldmesh.core.real

import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.join
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.core.node.NodeKeeper
import dev.fieldmesh.core.node.NodeSetup
import dev.fieldmesh.core.node.NodeState
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import java.io.File
import java.util.concurrent.TimeUnit
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** The phone's own node is a real agent, paired with a real `fieldmesh keys pair`, and the app is let in by it. */
class OwnNodeTest {
    private val field = Field(File(System.getProperty("fieldmesh.field")), System.getProperty("fieldmesh.namespaces"))

    @AfterTest
    fun end() = field.stop()

    @Test
    fun `one code makes the phone a node whose app is let in`() = runBlocking {
        val phone = newIdentity("app")
        val agent = field.ownAgent()
        val keeper = NodeKeeper(System::nanoTime, Dispatchers.IO)
        var process: Process? = null
        val being = launch {
            keeper.keep {
                agent.configure(NodeSetup("own-phone", "wlan0", phone.pin))
                agent.up().also { process = it }
            }
        }
        withTimeout(60_000) { keeper.state.first { it == NodeState.Unpaired } }

        val offer = field.offer("own-phone", isApp = false)
        val code = assertNotNull(PairingCode.parse(offer.code))
        val refused = assertFailsWith<AgentException.Refused> { join(code, phone, Dispatchers.IO) }
        assertEquals("conflict", refused.error.code, "it is a node's code, and stays good")
        assertNull(agent.join(code, Dispatchers.IO))
        assertTrue(offer.process.waitFor(60, TimeUnit.SECONDS), "keys pair goes on")

        withTimeout(60_000) { keeper.state.first { it is NodeState.Running } }
        val client = AgentClient(assertNotNull(agent.pairing), phone, Dispatchers.IO)
        withTimeout(60_000) {
            while (runCatching { client.status() }.getOrNull()?.node != "own-phone") delay(200)
        }
        val again = assertNotNull(agent.join(code, Dispatchers.IO))
        assertTrue("this node is paired already" in again, again)

        val killed = NodeState.Failing("face ended with signal: killed")
        val told = async(start = CoroutineStart.UNDISPATCHED) { keeper.state.first { it == killed } }
        assertNotNull(process).toHandle().children().forEach { it.destroyForcibly() }
        withTimeout(60_000) { told.await() }
        withTimeout(60_000) { keeper.state.first { it is NodeState.Running } }
        being.cancelAndJoin()
        assertEquals(NodeState.Off, keeper.state.value)
    }
}
