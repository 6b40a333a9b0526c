package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.app.Instrument
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.wire.Live
import java.io.IOException
import kotlin.test.Test
import kotlin.test.assertEquals

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

    @Test
    fun `the track has a throughput only where the node told it`() {
        val running = Heard.View(view("running", live = Live(fixMode = 3, throughputBps = 2e7)))
        val lost = Heard.Lost(AgentException.Unreachable(IOException("gone")))
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
