package dev.fieldmesh.core

import dev.fieldmesh.core.cue.Band
import dev.fieldmesh.core.cue.Cue
import dev.fieldmesh.core.cue.CueLogic
import dev.fieldmesh.core.cue.Zone
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNull
import kotlin.test.assertTrue

class CuesTest {
    private val band = Band(13.9, 0.5)

    private fun CueLogic.next(nowNs: Long, speedMps: Double?, band: Band?) = next(nowNs, band?.zone(speedMps))

    private fun seconds(s: Double) = (s * 1e9).toLong()

    @Test
    fun `faster, hold, and silence while it is held`() {
        val cues = CueLogic()
        assertEquals(Cue.FASTER, cues.next(0, 5.0, band))
        assertNull(cues.next(seconds(1.0), 6.0, band))
        assertNull(cues.next(seconds(3.0), 9.0, band), "no nagging while the speed rises")
        assertEquals(Cue.FASTER, cues.next(seconds(6.5), 12.0, band))
        assertEquals(Cue.HOLD, cues.next(seconds(9.0), 13.8, band))
        assertNull(cues.next(seconds(30.0), 14.1, band))
        assertEquals(Cue.SLOWER, cues.next(seconds(31.0), 14.6, band))
    }

    @Test
    fun `what happened comes before the speed and waits for its turn`() {
        val cues = CueLogic()
        assertEquals(Cue.FASTER, cues.next(0, 5.0, band))
        cues.happened(Cue.GO)
        assertNull(cues.next(seconds(1.9), 13.9, band))
        assertEquals(Cue.GO, cues.next(seconds(2.0), 13.9, band))
    }

    @Test
    fun `the target is spoken to its end before a word about the speed`() {
        val cues = CueLogic()
        cues.happened(Cue.TARGET)
        assertEquals(Cue.TARGET, cues.next(0, 0.0, band))
        assertNull(cues.next(seconds(2.0), 0.0, band), "its direction comes last")
        assertEquals(Cue.FASTER, cues.next(seconds(5.0), 0.0, band))
        cues.happened(Cue.TARGET)
        assertEquals(Cue.TARGET, cues.next(seconds(10.0), 0.0, band))
        cues.happened(Cue.GO)
        assertEquals(Cue.GO, cues.next(seconds(12.0), 0.0, band))
        assertEquals(Cue.FASTER, cues.next(seconds(14.0), 0.0, band), "nothing is left of the target to cut off")
    }

    @Test
    fun `that the car drives the other way is said once, until it does not`() {
        val cues = CueLogic()
        assertEquals(Cue.TURN, cues.next(0, Zone.TURNED))
        assertNull(cues.next(seconds(30.0), Zone.TURNED), "who drives back to the start knows it")
        assertEquals(Cue.HOLD, cues.next(seconds(40.0), Zone.WITHIN))
        assertEquals(Cue.TURN, cues.next(seconds(50.0), Zone.TURNED))
    }

    @Test
    fun `no word about a speed that nobody knows or that nobody asked for`() {
        val cues = CueLogic()
        assertNull(cues.next(0, null, band))
        assertNull(cues.next(seconds(5.0), 5.0, null))
    }

    @Test
    fun `property - cues follow the speed and keep their distance`() {
        repeat(300) { seed -> drive(seed) }
    }

    /** An hour's worth of steps of a random drive, with gaps, jumps, events and changing bands. */
    private fun drive(seed: Int) {
        val random = Random(seed)
        val cues = CueLogic()
        var now = 0L
        var speed = 0.0
        var saidNs: Long? = null
        var before: Cue? = null
        repeat(1500) { step ->
            now += random.nextLong(10_000_000, 700_000_000)
            speed =
                if (random.nextInt(50) ==
                    0
                ) {
                    random.nextDouble(0.0, 40.0)
                } else {
                    (speed + random.nextDouble(-1.0, 1.0)).coerceAtLeast(0.0)
                }
            val known = speed.takeIf { random.nextInt(20) > 0 }
            val asked = Band(random.nextInt(1, 4) * 8.3, random.nextDouble(0.2, 2.0)).takeIf { random.nextInt(30) > 0 }
            if (random.nextInt(40) == 0) cues.happened(Cue.entries.filter { it.isEvent }.random(random))
            val cue = cues.next(now, known, asked) ?: return@repeat
            val where = "seed $seed step $step: $cue at $known m/s, band $asked"
            val gapNs = if (before == Cue.TARGET && !cue.isEvent) CueLogic.TARGET_NS else CueLogic.MIN_GAP_NS
            saidNs?.let { assertTrue(now - it >= gapNs, "$where: ${now - it} ns after $before") }
            saidNs = now
            before = cue
            if (cue.isEvent) return@repeat
            assertTrue(known != null && asked != null, where)
            when (cue) {
                Cue.FASTER -> assertTrue(known < asked.lowMps, where)
                Cue.SLOWER -> assertTrue(known > asked.highMps, where)
                else -> assertTrue(known in asked.lowMps..asked.highMps, where)
            }
        }
    }

    @Test
    fun `property - what happened last is said in the end`() {
        repeat(200) { seed ->
            val random = Random(seed)
            val cues = CueLogic()
            val events = List(random.nextInt(1, 8)) { Cue.entries.filter { it.isEvent }.random(random) }
            events.forEach(cues::happened)
            val said = (0..20).mapNotNull { cues.next(seconds(2.0 * it), 20.0, band) }.filter { it.isEvent }
            assertEquals(events.last(), said.lastOrNull(), "seed $seed: $events said as $said")
            assertFalse(said.size > 3, "seed $seed: old events pile up: $said")
        }
    }
}
