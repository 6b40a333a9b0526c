package dev.fieldmesh.app

import android.graphics.Color
import dev.fieldmesh.app.view.ramp
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.annotation.Config
import kotlin.math.pow
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** How far two colours are apart, from 1 to 21, as WCAG defines it. */
internal fun contrast(one: Int, other: Int): Double {
    val (dark, bright) = listOf(light(one), light(other)).sorted()
    return (bright + 0.05) / (dark + 0.05)
}

/** Relative luminance as WCAG defines it. */
private fun light(color: Int): Double {
    fun channel(c: Int): Double {
        val s = c / 255.0
        return if (s <= 0.04045) s / 12.92 else ((s + 0.055) / 1.055).pow(2.4)
    }
    return 0.2126 * channel(Color.red(color)) + 0.7152 * channel(Color.green(color)) +
        0.0722 * channel(Color.blue(color))
}

/** Contrast by WCAG 2.1: 7 : 1 for text (1.4.6), 3 : 1 for lines and borders (1.4.11). */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class)
class ContrastTest {
    @Test
    fun light() = check()

    @Test
    @Config(qualifiers = "night")
    fun night() = check()

    private fun check() {
        val strong = listOf(R.color.accent, R.color.good, R.color.warn, R.color.bad)
        for (ground in listOf(R.color.ground, R.color.surface)) {
            for (text in strong + listOf(R.color.text, R.color.text_soft)) least(text, ground, 7.0)
            least(R.color.line, ground, 3.0)
        }
        for (ground in strong + R.color.text_soft) least(R.color.on_strong, ground, 7.0)
        checkRamp()
    }

    private fun least(one: Int, other: Int, ratio: Double) {
        val app = RuntimeEnvironment.getApplication()
        val found = contrast(app.getColor(one), app.getColor(other))
        val name = app.resources::getResourceEntryName
        assertTrue(found >= ratio, "%s on %s: %.1f, least is %.1f".format(name(one), name(other), found, ratio))
    }

    /** On every ground what was measured stands out, and who is red-green blind tells much from little by its blue. */
    private fun checkRamp() {
        val app = RuntimeEnvironment.getApplication()
        for (ground in MAP + R.color.surface) {
            for (i in 0..10) {
                val found = contrast(app.ramp(i / 10f), app.getColor(ground))
                val name = app.resources.getResourceEntryName(ground)
                assertTrue(found >= 3.0, "at ${i * 10} in 100 of the most on $name: %.1f".format(found))
            }
        }
        val blues = (0..10).map { Color.blue(app.ramp(it / 10f)) }
        assertEquals(blues.sorted(), blues)
        assertTrue(blues.last() - blues.first() >= 128, "$blues")
    }

    private companion object {
        val MAP = listOf(
            R.color.map_land,
            R.color.map_green,
            R.color.map_water,
            R.color.map_building,
            R.color.map_road,
            R.color.map_line,
        )
    }
}
