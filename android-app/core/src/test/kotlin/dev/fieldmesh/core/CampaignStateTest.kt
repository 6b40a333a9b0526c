package dev.fieldmesh.core

import dev.fieldmesh.core.app.CampaignState
import dev.fieldmesh.core.app.Standing
import dev.fieldmesh.core.wire.Acceptance
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.Course
import dev.fieldmesh.core.wire.Gate
import dev.fieldmesh.core.wire.Radio
import dev.fieldmesh.core.wire.Routing
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.SpoolPosition
import dev.fieldmesh.core.wire.TcpProfile
import dev.fieldmesh.core.wire.Trial
import dev.fieldmesh.core.wire.TrialView
import dev.fieldmesh.core.wire.Verdict
import dev.fieldmesh.core.wire.Word
import kotlin.test.Test
import kotlin.test.assertEquals

class CampaignStateTest {
    private fun trial(number: Int) = Trial(
        number = number,
        block = 1,
        factors = emptyMap(),
        receiver = "roadside",
        course = Course("none", accelMps2 = 1.0, brakeMps2 = 1.0, headingDeg = 0.0),
        gate = Gate(),
        durationS = 1.0,
        radio = Radio("none"),
        routing = Routing("none"),
        tcp = TcpProfile("reno"),
        acceptance = Acceptance(),
    )

    /** How the first of two trials, with at most two attempts each, stands after attempts with these outcomes. */
    private fun standing(outcomes: List<String>, word: String? = null): Standing {
        val attempts = outcomes.mapIndexed { i, o ->
            Verdict(
                1,
                i + 1,
                o,
                word = word?.takeIf {
                    i == outcomes.lastIndex
                }?.let { Word(it, "ada") },
            )
        }
        val view =
            CampaignView(
                1uL,
                "run",
                "c",
                "loaded",
                trials = listOf(TrialView(1, attempts)),
                position = SpoolPosition("e", 1),
            )
        return CampaignState.of(Schedule("run", "c", 2, listOf(trial(1), trial(2))), view).rows.first().standing
    }

    @Test
    fun `interrupted attempts use up none`() {
        assertEquals(Standing.NEXT, standing(listOf("interrupted", "interrupted", "interrupted", "failed")))
        assertEquals(Standing.REJECTED, standing(listOf("interrupted", "failed", "interrupted", "rejected")))
        assertEquals(Standing.INTERRUPTED, standing(List(20) { "interrupted" }))
        assertEquals(Standing.ACCEPTED, standing(listOf("interrupted", "interrupted", "accepted")))
    }

    @Test
    fun `a person may ask for more`() {
        assertEquals(Standing.NEXT, standing(listOf("failed", "failed"), "retry"))
        assertEquals(Standing.NEXT, standing(listOf("failed", "failed"), "repeat"))
        assertEquals(Standing.FAILED, standing(listOf("failed"), "skip"))
    }

    @Test
    fun `a factor is of speeds if its level is the car's speed in every trial`() {
        fun found(vararg trials: Trial): Set<String> {
            val view = CampaignView(1uL, "run", "c", "loaded", trials = emptyList(), position = SpoolPosition("e", 1))
            return CampaignState.of(Schedule("run", "c", 2, trials.toList()), view).rows.first().speedFactors
        }
        fun at(speed: Double?, level: String) =
            trial(1).copy(speedMps = speed, factors = mapOf("speed" to level, "streams" to "6", "section" to "A"))
        assertEquals(setOf("speed"), found(at(2.8, "2.8"), at(6.0, "6")))
        assertEquals(emptySet(), found(at(2.8, "slow"), at(6.0, "fast")))
        assertEquals(emptySet(), found(at(null, "2.8"), at(6.0, "6")))
    }
}
