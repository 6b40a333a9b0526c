package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.AgentLink
import dev.fieldmesh.core.agent.HEARD_MS
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.NodeApi
import dev.fieldmesh.core.agent.RecordPage
import dev.fieldmesh.core.agent.signalOf
import dev.fieldmesh.core.drive.SignalSource
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.NodeStatus
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.SpoolPosition
import dev.fieldmesh.core.wire.WireError
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.filterIsInstance
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runTest
import java.io.File
import java.io.IOException
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertNull

/** What is heard of a node whose run comes and goes; in virtual time. */
@OptIn(ExperimentalCoroutinesApi::class)
class AgentLinkTest {
    /** Holds [held], and is out of reach while [away]. */
    private class Node(var held: String?) : NodeApi {
        var away = false

        private fun answer() {
            if (away) throw AgentException.Unreachable(IOException("no route"))
        }

        private fun check(run: String) {
            answer()
            if (run != held) throw AgentException.Refused(WireError("not_found", "no run $run"))
        }

        override suspend fun status(): NodeStatus {
            answer()
            return sampleStatus().copy(run = held)
        }

        override suspend fun schedule(run: String): Schedule {
            check(run)
            return dev.fieldmesh.core.schedule(run)
        }

        /** What its spool has of a trial that is under way. */
        var spool: List<String>? = null

        override suspend fun view(run: String, known: ULong?, waitMs: Long): CampaignView {
            check(run)
            delay(waitMs)
            return if (spool == null) view("loaded", key = null, run = run) else view("running", run = run)
        }

        override suspend fun records(after: SpoolPosition?, limit: Int, waitMs: Long) =
            RecordPage(SpoolPosition("e", 1), checkNotNull(spool))
    }

    /** Follows a node for 10 s after each of [changes]; what is heard of runs. */
    private fun TestScope.runs(node: Node, vararg changes: Node.() -> Unit): List<String> {
        val heard = mutableListOf<String>()
        val job = launch {
            AgentLink(node) { currentTime * 1_000_000 }.follow().collect {
                when (it) {
                    is Heard.Plan -> heard += it.schedule.run
                    is Heard.NoRun -> heard += "none"
                    is Heard.Lost -> if (heard.lastOrNull() != "lost") heard += "lost"
                    else -> Unit
                }
            }
        }
        advanceTimeBy(10_000)
        for (change in changes) {
            node.change()
            advanceTimeBy(10_000)
        }
        job.cancel()
        return heard
    }

    @Test
    fun `a node without a run says so once`() = runTest {
        assertEquals(listOf("none"), runs(Node(held = null)))
    }

    @Test
    fun `a run that ends is told, and one that comes`() = runTest {
        val node = Node(held = "run-1")
        assertEquals(listOf("run-1", "none", "run-2"), runs(node, { held = null }, { held = "run-2" }))
    }

    @Test
    fun `a run that ended while the node was out of reach is told when it is back`() = runTest {
        val node = Node(held = "run-1")
        val told = runs(node, { away = true }, {
            away = false
            held = null
        })
        assertEquals(listOf("run-1", "lost", "none"), told)
    }

    @Test
    fun `a silent peer's last signal is not shown as the present one`() {
        val golden = File(System.getProperty("fieldmesh.golden"))
        val heard = golden.resolve("record_station.json").readText()
        fun dbm(record: String) = signalOf(record)?.dbm
        fun after(ms: Int) = heard.replace("\"inactive_ms\": 12", "\"inactive_ms\": $ms")
        assertEquals(-61.0, dbm(heard))
        assertEquals(-61.0, dbm(after(HEARD_MS)))
        assertNull(dbm(after(HEARD_MS + 1)))
        assertNull(dbm(heard.replace(",\n  \"inactive_ms\": 12", "")))
        assertContains(golden.resolve("../sampled.go").readText(), "const HeardMs = $HEARD_MS\n")
    }

    @Test
    fun `of several peers the strongest is heard, by its newest record`() = runTest {
        val record = File(System.getProperty("fieldmesh.golden"), "record_station.json").readText()
        fun station(peer: Int, dbm: Int) = record.replace("66\"", "0$peer\"").replace("-61", "$dbm")
        val node = Node(held = "run-1").apply {
            spool = listOf(station(1, -50), station(1, -60), station(2, -85))
        }
        val heard = AgentLink(node) { currentTime * 1_000_000 }.follow().filterIsInstance<Heard.Signal>().first()
        assertEquals(-60.0, heard.dbm)
    }

    @Test
    fun `a signal tells whose frames it is of`() {
        fun heard(record: String) = signalOf(File(System.getProperty("fieldmesh.golden"), "$record.json").readText())
        assertEquals(Heard.Signal(-61.0, SignalSource.NODES, "02:11:22:33:44:66"), heard("record_station"))
        assertEquals(Heard.Signal(-61.0, SignalSource.ACCESS_POINT), heard("record_wifi"))
    }
}
