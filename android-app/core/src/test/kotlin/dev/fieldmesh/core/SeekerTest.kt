package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Finder
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.agent.Seeker
import dev.fieldmesh.core.agent.Service
import dev.fieldmesh.core.agent.meets
import dev.fieldmesh.core.drive.DriveState
import dev.fieldmesh.core.drive.Phase
import dev.fieldmesh.core.wire.WireError
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOf
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.runTest
import java.io.IOException
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** When the app looks for a peer whose address has changed, and whom it believes. */
@OptIn(ExperimentalCoroutinesApi::class)
class SeekerTest {
    private val known = at("192.168.43.7")
    private val named = MutableSharedFlow<Pairing>(replay = 100)
    private var looks = 0
    private var mayLook = true
    private val lost = MutableStateFlow(false)
    private val found = mutableListOf<Pairing>()
    private val seeker = Seeker(
        Finder {
            looks++
            named
        },
    ) { mayLook }

    private fun at(host: String, pin: String = "ab") = Pairing(host, 7443, Pin(pin.repeat(32)))

    private fun TestScope.follow(shows: suspend (Pairing) -> Boolean = { true }) =
        backgroundScope.launch { seeker.follow(known, lost, shows, found::add) }

    @Test
    fun `who is reached is not looked for`() = runTest {
        follow()
        advanceTimeBy(3_600_000)
        lost.value = true
        advanceTimeBy(4_000)
        lost.value = false
        advanceTimeBy(3_600_000)
        assertEquals(0, looks)
    }

    @Test
    fun `who is lost is looked for, less and less often`() = runTest {
        follow()
        lost.value = true
        advanceTimeBy(60_000)
        assertEquals(3, looks, "at 5, 20 and 40 s")
        advanceTimeBy(3_540_000)
        assertTrue(looks in 50..56, "$looks in an hour")
        named.emit(at("192.168.12.4"))
        advanceTimeBy(70_000)
        assertEquals(listOf(at("192.168.12.4")), found)
        val before = looks
        advanceTimeBy(600_000)
        assertEquals(before, looks, "it is found")
    }

    @Test
    fun `who comes back is looked for no more`() = runTest {
        follow()
        lost.value = true
        advanceTimeBy(6_000)
        assertEquals(1, named.subscriptionCount.value)
        lost.value = false
        advanceTimeBy(1)
        assertEquals(0, named.subscriptionCount.value, "the radio listens for nothing")
    }

    @Test
    fun `others and the known address are not asked`() = runTest {
        val asked = mutableListOf<Pairing>()
        follow { asked.add(it) && false }
        named.emit(known)
        named.emit(at("192.168.12.9", "cd"))
        named.emit(at("192.168.12.4"))
        named.emit(at("192.168.12.4"))
        lost.value = true
        advanceTimeBy(14_000)
        assertEquals(listOf(at("192.168.12.4")), asked)
        assertEquals(emptyList(), found)
    }

    @Test
    fun `one that never answers holds up none, and a crowd is not asked`() = runTest {
        val asked = AtomicInteger()
        follow {
            asked.incrementAndGet()
            if (it.host == "192.168.12.4") true else awaitCancellation()
        }
        named.emit(at("192.168.12.1"))
        named.emit(at("192.168.12.4"))
        lost.value = true
        advanceTimeBy(6_000)
        assertEquals(listOf(at("192.168.12.4")), found)
        lost.value = false
        found.clear()
        named.resetReplayCache()
        repeat(60) { named.emit(at("192.168.13.$it")) }
        asked.set(0)
        advanceTimeBy(1)
        lost.value = true
        advanceTimeBy(14_000)
        assertEquals(16, asked.get())
    }

    @Test
    fun `nothing is asked while a trial may be measured`() = runTest {
        mayLook = false
        follow()
        lost.value = true
        advanceTimeBy(600_000)
        assertEquals(0, looks)
        mayLook = true
        advanceTimeBy(2_000)
        assertEquals(1, looks)
    }

    @Test
    fun `a trial of a node that is lost ends some time`() {
        val running = DriveState(phase = Phase.RUNNING, durationS = 60.0)
        assertTrue(Seeker.mayMeasure(running, nowNs = 0))
        val stale = running.copy(staleSinceNs = 0)
        assertTrue(Seeker.mayMeasure(stale, 179_000_000_000))
        assertFalse(Seeker.mayMeasure(stale, 181_000_000_000))
        assertFalse(Seeker.mayMeasure(DriveState(phase = Phase.IDLE), 0))
    }

    @Test
    fun `a search that fails is made again`() = runTest {
        var tries = 0
        val fails = Seeker(
            Finder {
                tries++
                if (tries < 3) flow {} else flowOf(at("192.168.12.4"))
            },
        )
        backgroundScope.launch { fails.follow(known, flowOf(true), { true }, found::add) }
        advanceTimeBy(60_000)
        assertEquals(listOf(at("192.168.12.4")), found)
        assertEquals(3, tries)
    }

    @Test
    fun `the phone's own node does not move`() = runTest {
        backgroundScope.launch { seeker.follow(at(Pairing.LOOPBACK), flowOf(true), { true }, found::add) }
        advanceTimeBy(600_000)
        assertEquals(0, looks)
    }

    @Test
    fun `what a record tells is read strictly`() {
        val pin = "ab".repeat(32)
        assertEquals(at("192.168.12.4"), Service.read("192.168.12.4", 7443, pin.toByteArray()))
        assertNull(Service.read(null, 7443, pin.toByteArray()))
        assertNull(Service.read("192.168.12.4", 0, pin.toByteArray()))
        assertNull(Service.read("192.168.12.4", 7443, null))
        for (other in listOf("", "ab", pin + "0", "${pin.dropLast(1)}g", "$pin#")) {
            assertNull(Service.read("192.168.12.4", 7443, other.toByteArray()), other)
        }
    }

    @Test
    fun `whatever a peer with the right key says, it is met`() = runBlocking {
        val refused = WireError("unavailable", "no")
        for (e in listOf(AgentException.NotPaired(null), AgentException.Refused(refused))) assertTrue(meets { throw e })
        val none = IOException("none")
        val others =
            listOf(AgentException.Unreachable(none), AgentException.WrongNode(none), AgentException.NoKey(none))
        for (e in others) assertFalse(meets { throw e })
        assertTrue(meets {})
    }

    /** Two that claim one key: the one that has it is taken, whichever answers first; the other is told nothing. */
    @Test
    fun `a liar who claims the peer's key is not talked to`() = runBlocking {
        val app = newIdentity("app")
        val node = newIdentity("node")
        val told = AtomicInteger()
        TlsServer(newIdentity("liar"), app) {
            told.incrementAndGet()
            it.send(200, "{}")
        }.use { liar ->
            TlsServer(node, app) { it.send(503, """{"code": "unavailable", "message": "no"}""") }.use { right ->
                val claims = listOf(liar, right).map { Pairing(Pairing.LOOPBACK, it.port, node.pin) }
                val finder = object : Finder {
                    override fun peers(): Flow<Pairing> = flowOf(*claims.toTypedArray())
                }
                val moved = mutableListOf<Pairing>()
                val gone = Pairing("192.0.2.1", 7443, node.pin)
                val looking = launch {
                    val shows: suspend (Pairing) -> Boolean =
                        { meets { AgentClient(it, app, Dispatchers.IO).status() } }
                    Seeker(finder).follow(gone, flowOf(true), shows, moved::add)
                }
                looking.join()
                assertEquals(listOf(claims[1]), moved)
                assertEquals(0, told.get())
            }
        }
    }
}
