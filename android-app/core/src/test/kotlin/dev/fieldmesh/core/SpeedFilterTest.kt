package dev.fieldmesh.core

import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.gps.SpeedFilter
import java.io.File
import java.util.Random
import kotlin.math.abs
import kotlin.math.sqrt
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertNull
import kotlin.test.assertTrue

class SpeedFilterTest {
    private fun fix(ns: Long, speed: Double?, error: Double? = 0.3) =
        Fix(ns, mode = 3, latDeg = 0.0, lonDeg = 0.0, speedMps = speed, speedErrMps = error)

    @Test
    fun `nothing is known before the first fix and after the last is old`() {
        val filter = SpeedFilter()
        assertNull(filter.at(0))
        filter.add(fix(0, 10.0))
        assertEquals(10.0, filter.at(1_000_000_000))
        assertNull(filter.at(SpeedFilter.STALE_NS + 1))
        assertNull(filter.add(Fix.none(5_000_000_000)))
    }

    @Test
    fun `one wild fix changes nothing, a second one that agrees is believed`() {
        val filter = SpeedFilter()
        for (i in 0..10) filter.add(fix(i * 1_000_000_000L, 13.9))
        assertEquals(13.9, filter.add(fix(11_000_000_000, 60.0))!!, 0.01)
        assertEquals(13.9, filter.add(fix(12_000_000_000, 13.9))!!, 0.3)
        filter.add(fix(13_000_000_000, 60.0))
        assertEquals(60.0, filter.add(fix(14_000_000_000, 60.0))!!, 0.01)
    }

    @Test
    fun `what is no speed is passed over`() {
        val filter = SpeedFilter()
        filter.add(fix(0, 5.0))
        for (bad in listOf(Double.NaN, -1.0, Double.POSITIVE_INFINITY)) assertEquals(5.0, filter.add(fix(100, bad)))
    }

    /** A car's drives at the speeds of the velocity campaign, with a receiver's noise, at 1 and 10 Hz. */
    @Test
    fun `a drive is followed, steadier than the receiver tells it`() {
        for (target in listOf(2.8, 8.3, 13.9, 16.7)) {
            for (rateHz in listOf(1, 10)) {
                val random = Random(7)
                val filter = SpeedFilter()
                var raw = 0.0
                var filtered = 0.0
                var count = 0
                var worst = 0.0
                for (i in 0 until 60 * rateHz) {
                    val t = i.toDouble() / rateHz
                    val truth = (t * 1.8).coerceAtMost(target)
                    val measured = (truth + random.nextGaussian() * 0.3).coerceAtLeast(0.0)
                    val shown = filter.add(fix((t * 1e9).toLong(), measured))!!
                    worst = maxOf(worst, abs(shown - truth))
                    if (t < target / 1.8 + 5) continue
                    count++
                    raw += (measured - truth) * (measured - truth)
                    filtered += (shown - truth) * (shown - truth)
                }
                val what = "$target m/s at $rateHz Hz"
                assertTrue(
                    sqrt(filtered / count) <= sqrt(raw / count) * 1.001,
                    "$what: ${sqrt(filtered / count)} against ${sqrt(
                        raw / count,
                    )}",
                )
                assertTrue(worst < 1.6, "$what: off by $worst")
            }
        }
    }

    /**
     * Recordings of real receivers: what is shown lies within what the receiver
     * said in the last seconds, comes with its first speed, and follows it.
     */
    @Test
    fun `recorded tracks are followed`() {
        for ((name, least) in listOf(
            "bt451" to 5.0,
            "bundg_zeus_9" to 2.0,
            "haicom-305N" to 2.0,
            "quectel-eg25-g" to 1.0,
        )) {
            val speeds = recorded(name)
            assertTrue(
                speeds.size > 10 &&
                    speeds.any {
                        it.second > least
                    },
                "$name: ${speeds.size} speeds up to ${speeds.maxOfOrNull { it.second }}",
            )
            val filter = SpeedFilter()
            val off = speeds.mapIndexed { i, (ns, said) ->
                val shown = filter.add(fix(ns, said, error = null))
                val lately = speeds.take(i + 1).filter { ns - it.first <= 5_000_000_000 }.map { it.second }
                assertTrue(
                    shown != null && shown in lately.min() - 1e-9..lately.max() + 1e-9,
                    "$name at $ns: $shown, lately $lately",
                )
                abs(shown - said)
            }
            assertTrue(
                off.sorted()[off.size / 2] < 0.3,
                "$name: half of what is shown is off by ${off.sorted()[off.size / 2]} m/s and more",
            )
        }
    }

    /** Times and speeds of the valid RMC sentences of a recording. */
    private fun recorded(name: String): List<Pair<Long, Double>> =
        File(System.getProperty("fieldmesh.nmea"), "$name.nmea").readLines()
            .map { it.substringBefore('*').split(',') }
            .filter { it.first().endsWith("RMC") && it.getOrNull(2) == "A" && it[7].isNotEmpty() }
            .map {
                (it[1].take(2).toInt() * 3600 + it[1].substring(2, 4).toInt() * 60 + it[1].drop(4).toDouble()) * 1e9 to
                    it[7].toDouble() * KNOT_MPS
            }
            .map { (ns, mps) -> ns.toLong() to mps }

    private companion object {
        /** 1852 m an hour. */
        const val KNOT_MPS = 1852.0 / 3600
    }
}
