package dev.fieldmesh.app

import dev.fieldmesh.app.screen.Speeds
import dev.fieldmesh.core.app.SpeedUnit
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.annotation.Config
import kotlin.test.Test
import kotlin.test.assertEquals

@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class)
class WordsTest {
    /** What the rule found, in the words of the screen. */
    private fun found(reason: String) =
        Speeds(RuntimeEnvironment.getApplication(), SpeedUnit.KMH).reason(reason).substringAfter("\n")

    private fun check(wanted: Map<String, String>) = assertEquals(wanted, wanted.mapValues { found(it.key) })

    @Test
    fun `what a rule found differs from its limit also in percent`() = check(
        mapOf(
            "speed: in_band_share_min is 0.62, limit 0.8" to "In band: 62 %, limit 80 %",
            "speed: in_band_share_min is 0.7997, limit 0.8" to "In band: 79.97 %, limit 80 %",
            "speed: in_band_share_min is 0, limit 0.8" to "In band: 0 %, limit 80 %",
            "lateness: lateness_share_max is 0.01004, limit 0.01" to
                "Lateness of the emulated radio: 1.004 %, limit 1 %",
            "lateness: lateness_share_max is 5e-05, limit 1e-05" to
                "Lateness of the emulated radio: 0.005 %, limit 0.001 %",
            "gps: fix_age_ms_max on car is 2.3e+04, limit 1500" to "Age of the GPS fix on car: 23000 ms, limit 1500 ms",
        ),
    )

    @Test
    fun `a receiver without a fix has no dimensions`() = check(
        mapOf(
            "gps: fix_mode_min on car is 0, limit 2" to "GPS fix on car: unknown, limit 2-D",
            "gps: fix_mode_min on car is 1, limit 3" to "GPS fix on car: no fix, limit 3-D",
            "gps: fix_mode_min on car is 2, limit 3" to "GPS fix on car: 2-D, limit 3-D",
            "gps: fix_mode_min on car not measured" to "GPS fix on car: not measured",
        ),
    )

    @Test
    @Config(qualifiers = "+de")
    fun `rules in German`() = check(
        mapOf(
            "gps: fix_mode_min on car is 0, limit 2" to "GPS-Fix auf car: unbekannt, Grenze 2-D",
            "gps: fix_mode_min on car is 1, limit 2" to "GPS-Fix auf car: keine Position, Grenze 2-D",
            "lateness: lateness_share_max is 0.012, limit 0.01" to
                "Verspätung des emulierten Funks: 1,2 %, Grenze 1 %",
        ),
    )
}
