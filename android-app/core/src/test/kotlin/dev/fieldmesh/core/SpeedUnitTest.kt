package dev.fieldmesh.core

import dev.fieldmesh.core.app.SpeedUnit
import java.util.Locale
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertEquals

class SpeedUnitTest {
    private val before = Locale.getDefault().also { Locale.setDefault(Locale.ROOT) }

    @AfterTest
    fun after() = Locale.setDefault(before)

    @Test
    fun `a speed in each unit`() {
        assertEquals(50.0, SpeedUnit.KMH.of(50 / 3.6), 1e-9)
        assertEquals(30.0, SpeedUnit.MPH.of(13.4112), 1e-9) // NIST SP 811, B.8: 0.44704 m/s each
        assertEquals(13.9, SpeedUnit.MPS.of(13.9))
    }

    @Test
    fun `a node's words have the speeds of the screen`() {
        for ((words, wanted) in mapOf(
            "waiting for 13.4 to 14.4 m/s" to "waiting for 48.2 to 51.8 km/h",
            "band 13.9 ± 0.5 m/s" to "band 50.0 ± 1.8 km/h",
            "faster: 9.2 of 13.9 m/s" to "faster: 33.1 of 50.0 km/h",
            "the speeds are 2.8, 5.6, 8.3 m/s instead of 2.8 and 10 m/s" to
                "the speeds are 10.1, 20.2, 29.9 km/h instead of 10.1 and 36.0 km/h",
            "speed 10 m/s, limit 5 m/s" to "speed 36.0 km/h, limit 18.0 km/h",
            "waiting for the mark at 20 m" to "waiting for the mark at 20 m",
            "2.5 m/s2" to "2.5 m/s2",
            "10 m/s needs 27 m of run-up (2 m/s², hold)" to "36.0 km/h needs 27 m of run-up (2 m/s², hold)",
            "speeds from 5 up to 3 m/s are none" to "speeds from 18.0 up to 10.8 km/h are none",
        )) {
            assertEquals(wanted, SpeedUnit.KMH.inWords(words, "km/h"))
        }
        assertEquals("at 13.9 m/s", SpeedUnit.MPS.inWords("at 13.9 m/s", "m/s"))
    }
}
