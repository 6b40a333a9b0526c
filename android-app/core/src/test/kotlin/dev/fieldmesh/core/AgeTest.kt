package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.app.Instrument
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.wire.Live
import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.TrialKey
import java.io.IOException
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertNotEquals

/** What a node told once does not pass for the present. */
class AgeTest {
    private var now = 0L
    private val instrument = Instrument({ now }, { _, _ -> })

    private fun at(seconds: Double) {
        now = (seconds * 1e9).toLong()
        instrument.refresh()
    }

    private fun driveUntil(seconds: Double) {
        at(seconds)
        instrument.fix(Fix(now, mode = 3, latDeg = 0.0, lonDeg = seconds * 10 / 111_195))
    }

    private val lost = Heard.Lost(AgentException.Unreachable(IOException("gone")))

    @Test
    fun `a status is told with its age when it is old, or the node is not heard`() {
        val status = Heard.Status(sampleStatus())
        val told = { instrument.state.value.run { nodeNs to nodeOldS } }
        assertEquals(null to null, told())
        at(1.0)
        instrument.heard(status)
        at(6.0)
        assertEquals(1_000_000_000L to null, told())
        at(7.5)
        assertEquals(1_000_000_000L to 6L, told())
        instrument.heard(status)
        assertEquals(7_500_000_000L to null, told())
        at(9.0)
        instrument.heard(lost)
        assertEquals(7_500_000_000L to 1L, told())
        instrument.unpaired()
        assertEquals(null to null, told())
    }

    @Test
    fun `a mark is of a trial only while the node is heard`() {
        instrument.heard(Heard.Plan(schedule()))
        instrument.heard(Heard.View(view("running", key = TrialKey(2, 1))))
        val mark = { instrument.state.value.mark("1", "bus", Fix(0, 3, latDeg = 1.0, lonDeg = 2.0)) }
        assertEquals(Note("1", "mark", "bus", null, "run-1", 2, 1, 1.0, 2.0), mark())
        instrument.heard(lost)
        assertEquals(Note("1", "mark", "bus", null, "run-1", null, null, 1.0, 2.0), mark())
    }

    @Test
    fun `a mark between trials is of no trial`() {
        instrument.heard(Heard.Plan(schedule()))
        val marked = listOf("loaded", "armed", "running", "restoring", "kept").associateWith { state ->
            instrument.heard(Heard.View(view(state, TrialKey(2, 1).takeIf { state != "loaded" })))
            instrument.state.value.mark("1", "lunch", null).trial
        }
        assertEquals(mapOf("loaded" to null, "armed" to 2, "running" to 2, "restoring" to 2, "kept" to null), marked)
    }

    @Test
    fun `nothing is known of the way that was driven without a fix`() {
        driveUntil(0.5)
        driveUntil(1.5)
        driveUntil(600.0)
        driveUntil(601.0)
        assertEquals(listOf(false, false, true, false), instrument.state.value.track.points.map { it.afterGap })
    }

    @Test
    fun `a node whose answer cannot be read is not out of reach`() {
        instrument.heard(Heard.Lost(AgentException.BadAnswer(IOException("an unknown field"))))
        assertNotEquals(LinkState.LOST, instrument.state.value.drive.link)
    }

    @Test
    fun `the track has a throughput only where the node told it`() {
        val running = Heard.View(view("running", live = Live(throughputBps = 2e7)))
        instrument.heard(running)
        driveUntil(0.5)
        instrument.heard(lost)
        driveUntil(1.0)
        instrument.heard(running)
        driveUntil(2.0)
        driveUntil(3.0)
        assertEquals(listOf(2e7, null, 2e7, null), instrument.state.value.track.points.map { it.throughputBps })
    }
}
