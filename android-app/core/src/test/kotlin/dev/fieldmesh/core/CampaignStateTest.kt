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
import dev.fieldmesh.core.wire.TrialKey
import dev.fieldmesh.core.wire.TrialView
import dev.fieldmesh.core.wire.Verdict
import dev.fieldmesh.core.wire.Word
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.boolean
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import java.io.File
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue

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

    private fun of(attempts: List<Verdict>, now: TrialKey? = null) = CampaignState.of(
        Schedule("run", "c", 2, listOf(trial(1), trial(2))),
        CampaignView(
            1uL,
            "run",
            "c",
            if (now == null) "loaded" else "running",
            now,
            trials = listOf(TrialView(1, attempts)),
            position = SpoolPosition("e", 1),
        ),
    )

    /** An attempt as its number, its outcome and a person's word. */
    private fun attempt(text: String): Verdict {
        val (number, outcome) = text.split(" ")
        val word = text.split(" ").getOrNull(2)?.let { Word(it, "ada") }
        return Verdict(1, number.toInt(), outcome, isFinal = true, word = word)
    }

    @Test
    fun `a trial is done when the controller says so`() {
        val golden = File(System.getProperty("fieldmesh.golden"), "../../../internal/verdict/testdata/next.json")
        val cases = Json.parseToJsonElement(golden.readText()).jsonArray.map { it.jsonObject }
        assertTrue(cases.size >= 30)
        for (c in cases) {
            val attempts = c.getValue("attempts").jsonArray.map { attempt(it.jsonPrimitive.content) }
            assertEquals(c.getValue("more").jsonPrimitive.boolean, of(attempts).next?.number == 1, "$c")
        }
    }

    @Test
    fun `a trial that is done stands as its newest attempt`() {
        fun standing(vararg attempts: String) = of(attempts.map(::attempt)).rows.first().standing
        assertEquals(Standing.NEXT, standing("1 interrupted", "2 failed"))
        assertEquals(Standing.REJECTED, standing("4 rejected", "2 failed", "3 interrupted"))
        assertEquals(Standing.INTERRUPTED, standing(*Array(20) { "${it + 1} interrupted" }))
        assertEquals(Standing.ACCEPTED, standing("1 interrupted", "2 accepted"))
        assertEquals(Standing.FAILED, standing("1 failed skip"))
    }

    @Test
    fun `a row's attempt is the newest that the node knows of, whatever verdicts it lacks`() {
        fun attempt(now: TrialKey?, vararg attempts: String) = of(attempts.map(::attempt), now).rows.first().attempt
        assertEquals(null, attempt(null))
        assertEquals(null, attempt(TrialKey(2, 1)))
        assertEquals(3, attempt(null, "1 rejected", "3 failed"))
        assertEquals(2, attempt(TrialKey(1, 2), "1 rejected"))
        assertEquals(2, attempt(TrialKey(2, 4), "2 rejected"))
    }

    @Test
    fun `what a node has accepted by itself is not final`() {
        assertEquals(1 to 0, of(listOf(attempt("1 accepted"))).run { accepted to provisional })
        assertEquals(1 to 1, of(listOf(attempt("1 accepted").copy(isFinal = false))).run { accepted to provisional })
    }

    @Test
    fun `a run that was paused or ended has no next trial, unless all are done it is stopped`() {
        val view = CampaignView(
            1uL,
            "run",
            "c",
            "loaded",
            trials = listOf(TrialView(1, listOf(attempt("1 rejected"), attempt("2 rejected")))),
            position = SpoolPosition("e", 1),
            ended = true,
        )
        fun of(vararg trials: Int) = CampaignState.of(Schedule("run", "c", 2, trials.map(::trial)), view)
        of(1, 2).run {
            assertEquals(Triple(true, null, false), Triple(isStopped, next, isOver))
            val standings = rows.map { it.standing to it.isOpen }
            assertEquals(listOf(Standing.REJECTED to false, Standing.OPEN to true), standings)
        }
        of(1).run { assertEquals(Triple(false, null, true), Triple(isStopped, next, isOver)) }
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
