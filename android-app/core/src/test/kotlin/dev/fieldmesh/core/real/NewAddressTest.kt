package dev.fieldmesh.core.real

import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.AgentLink
import dev.fieldmesh.core.agent.Finder
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Seeker
import dev.fieldmesh.core.agent.meets
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.flowOf
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.merge
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import java.io.File
import java.time.Duration
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith

/** A real agent whose address has changed is found by a real question; another one that claims its key is not taken. */
class NewAddressTest {
    private val field = Field(File(System.getProperty("fieldmesh.field")), System.getProperty("fieldmesh.namespaces"))

    @AfterTest
    fun end() {
        field.readdress("car", OLD)
        field.stop()
    }

    private fun client(at: Pairing) = AgentClient(at, field.controller, Dispatchers.IO, timeout = Duration.ofSeconds(2))

    @Test
    fun `an agent is found at its new address, and not where another claims its key`() = runBlocking {
        for (node in listOf("car", "roadside")) {
            field.giveKeys(node)
            field.start(node)
            withTimeout(60_000) { while (!meets { client(field.pairing(node)).status() }) delay(200) }
        }
        field.call("car", "POST", "/v1/restore") // a run of another test may go on there
        val paired = field.pairing("car")
        val liar = field.pairing("roadside").copy(pin = paired.pin)
        assertFailsWith<AgentException.WrongNode> { client(liar).status() }

        val found = CompletableDeferred<Pairing>()
        val named = mutableListOf<Pairing>()
        val seeker = Seeker(Finder { merge(flowOf(liar), MulticastDns("car").peers().map { it.also(named::add) }) })
        val lost = AgentLink(client(paired), System::nanoTime).follow().map { it is Heard.Lost }
        val seeking = launch(Dispatchers.IO) {
            seeker.follow(paired, lost, { meets { client(it).status() } }, found::complete)
        }
        field.readdress("car", NEW)
        val now = withTimeout(60_000) { found.await() }
        seeking.cancel()
        assertEquals(paired.copy(host = NEW), now)
        assertEquals(setOf(now), named.toSet(), "what the agents themselves say")
        assertEquals("car", client(now).status().node)
    }

    private companion object {
        const val OLD = "192.168.1.2"
        const val NEW = "192.168.1.77"
    }
}
