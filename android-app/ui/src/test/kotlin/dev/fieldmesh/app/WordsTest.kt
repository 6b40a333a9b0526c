package dev.fieldmesh.app

import dev.fieldmesh.app.screen.Speeds
import dev.fieldmesh.app.screen.cueText
import dev.fieldmesh.app.screen.word
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.app.Instrument
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.cue.Band
import dev.fieldmesh.core.cue.CueLogic
import dev.fieldmesh.core.cue.Zone
import dev.fieldmesh.core.drive.DriveState
import dev.fieldmesh.core.drive.Goal
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.drive.Phase
import dev.fieldmesh.core.schedule
import dev.fieldmesh.core.trial
import dev.fieldmesh.core.verdict
import dev.fieldmesh.core.view
import dev.fieldmesh.core.wire.Check
import dev.fieldmesh.core.wire.TrialKey
import dev.fieldmesh.core.wire.Verdict
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.annotation.Config
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertNull

@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class)
class WordsTest {
    /** What is shown of an attempt that a check has rejected, below the plain words of the reason's code. */
    private fun found(code: String, check: Check): String? {
        val verdict = Verdict(1, 1, "rejected", "$code: another text", listOf(passed, check), isFinal = true)
        return Speeds(RuntimeEnvironment.getApplication(), SpeedUnit.KMH).reason(verdict)?.substringAfter("\n")
    }

    private val passed = Check("in_band_share_min", limit = 0.8, measured = 0.9, pass = true)

    private fun share(measured: Double, limit: Double) =
        found("speed", Check("in_band_share_min", limit = limit, measured = measured, pass = false))

    private fun late(measured: Double, limit: Double) =
        found("lateness", Check("lateness_share_max", limit = limit, measured = measured, pass = false))

    private fun fix(measured: Double?, limit: Double) =
        found("gps", Check("fix_mode_min", "car", limit, measured, pass = false))

    @Test
    fun `what a rule found differs from its limit also in percent`() {
        assertEquals("In band: 62 %, limit 80 %", share(0.62, 0.8))
        assertEquals("In band: 79.97 %, limit 80 %", share(0.7997, 0.8))
        assertEquals("In band: 79.9996 %, limit 80 %", share(0.7999963, 0.8))
        assertEquals("In band: 61.23 %, limit 80 %", share(0.6123456, 0.8))
        assertEquals("In band: 0 %, limit 80 %", share(0.0, 0.8))
        assertEquals("Lateness of the emulated radio: 1.004 %, limit 1 %", late(0.01004, 0.01))
        assertEquals("Lateness of the emulated radio: 0.005 %, limit 0.001 %", late(5e-05, 1e-05))
        assertEquals(
            "Age of the GPS fix on car: 23000 ms, limit 1500 ms",
            found("gps", Check("fix_age_ms_max", "car", 1500.0, 23000.0, pass = false)),
        )
    }

    @Test
    fun `a receiver without a fix has no dimensions`() {
        assertEquals("GPS fix on car: unknown, limit 2-D", fix(0.0, 2.0))
        assertEquals("GPS fix on car: no fix, limit 3-D", fix(1.0, 3.0))
        assertEquals("GPS fix on car: 2-D, limit 3-D", fix(2.0, 3.0))
        assertEquals("GPS fix on car: not measured", fix(null, 3.0))
    }

    @Test
    fun `a rule that the app does not know is told as the node tells it`() =
        assertEquals("another text", found("speed", Check("humidity_max", limit = 1.0, measured = 2.0, pass = false)))

    @Test
    fun `an attempt without a reason has none`() = assertNull(
        Speeds(RuntimeEnvironment.getApplication(), SpeedUnit.KMH).reason(Verdict(1, 1, "accepted", isFinal = true)),
    )

    @Test
    fun `a node that is not heard is the word of every phase, as what is known may be over`() {
        val done = Verdict(1, 1, "accepted", isFinal = true)
        for (phase in Phase.entries - Phase.NO_RUN) {
            val lost = DriveState(LinkState.LOST, phase, staleSinceNs = 1, verdict = done)
            assertEquals(R.string.word_stale, lost.word().text, "$phase")
        }
        assertEquals(R.string.word_no_run, DriveState(LinkState.LOST).word().text)
    }

    @Test
    fun `a car that is to turn is not told to hold its speed`() {
        val turned = DriveState(LinkState.UP, Phase.ARMED, band = Band(13.9, 0.5), speedMps = 13.9, zone = Zone.TURNED)
        assertEquals(R.string.word_turn, turned.word().text)
    }

    @Test
    fun `a car that has yet to stand at its start is told so, and not that all is ready`() {
        fun word(goal: Goal, phase: Phase, hasFix: Boolean = true) =
            DriveState(LinkState.UP, phase, goTo = goal, hasFix = hasFix).word().text
        for (phase in listOf(Phase.IDLE, Phase.ARMED)) {
            assertEquals(R.string.word_to_start, word(Goal.START, phase))
            assertEquals(R.string.word_to_mark, word(Goal.MARK, phase))
            assertEquals(R.string.word_no_fix, word(Goal.START, phase, hasFix = false), "it is not known where it is")
        }
    }

    /** What is said of the first trial's [attempt] when it is over, in a campaign of so many [trials]. */
    private fun said(outcome: String, attempt: Int, trials: Int, ended: Boolean = false): List<String> {
        var nowNs = 0L
        val said = mutableListOf<String>()
        val instrument = Instrument({ nowNs }) { cue, state ->
            RuntimeEnvironment.getApplication().cueText(cue, state, SpeedUnit.KMH)?.let(said::add)
        }
        instrument.heard(Heard.Plan(schedule(trials = List(trials) { trial(it + 1, speed = 10.0 * (it + 1)) })))
        val before = List(attempt - 1) { verdict("rejected", attempt = it + 1) }
        instrument.heard(Heard.View(view("running", TrialKey(1, attempt), before)))
        if (ended) instrument.heard(Heard.View(view("running", TrialKey(1, attempt), before).copy(ended = true)))
        val verdicts = before + verdict(outcome, attempt = attempt)
        instrument.heard(Heard.View(view("kept", TrialKey(1, attempt), verdicts).copy(ended = ended)))
        repeat(5) {
            nowNs += CueLogic.MIN_GAP_NS
            instrument.refresh()
        }
        return said
    }

    @Test
    fun `a trial is said to be driven again while it may be`() {
        val first = "next, 36 kilometres per hour, away from the roadside"
        assertEquals(listOf("trial rejected, again, $first"), said("rejected", 1, trials = 2))
        assertEquals(listOf("trial failed, again, $first"), said("failed", 2, trials = 2))
        assertEquals(listOf("trial interrupted, again, $first"), said("interrupted", 3, trials = 2))
        val second = "next, 72 kilometres per hour, away from the roadside"
        assertEquals(listOf("trial rejected, given up, $second"), said("rejected", 3, trials = 2))
        assertEquals(listOf("trial failed, given up, nothing is left to drive"), said("failed", 3, trials = 1))
        assertEquals(listOf("trial done, $second"), said("accepted", 3, trials = 2))
        assertEquals(listOf("trial done, nothing is left to drive"), said("accepted", 1, trials = 1))
    }

    @Test
    fun `of a run that was stopped nothing is said to be next`() {
        val said = said("interrupted", 1, trials = 2, ended = true)
        assertEquals(listOf("the run is stopped", "trial interrupted"), said)
        for (phase in listOf(Phase.IDLE, Phase.DONE)) {
            assertEquals(R.string.word_stopped, DriveState(LinkState.UP, phase, isStopped = true).word().text)
        }
    }

    @Test
    @Config(qualifiers = "+de")
    fun `rules in German`() {
        assertEquals("GPS-Fix auf car: unbekannt, Grenze 2-D", fix(0.0, 2.0))
        assertEquals("GPS-Fix auf car: keine Position, Grenze 2-D", fix(1.0, 2.0))
        assertEquals("Verspätung des emulierten Funks: 1,2 %, Grenze 1 %", late(0.012, 0.01))
    }
}
