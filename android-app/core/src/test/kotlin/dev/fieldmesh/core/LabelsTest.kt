package dev.fieldmesh.core

import dev.fieldmesh.core.app.Box
import dev.fieldmesh.core.app.Labels
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

class LabelsTest {
    private fun symbol(x: Float, y: Float) = Box(x - 10, y - 10, x + 10, y + 10)

    @Test
    fun `words stand below their symbol, and above it where another's do`() {
        val labels = Labels(400f, 400f)
        assertEquals(Box(150f, 210f, 250f, 230f), labels.place(symbol(200f, 200f), 100f, 20f))
        assertEquals(Box(155f, 170f, 255f, 190f), labels.place(symbol(205f, 200f), 100f, 20f))
    }

    @Test
    fun `words stay within the view`() {
        val labels = Labels(400f, 400f)
        assertEquals(Box(0f, 210f, 100f, 230f), labels.place(symbol(5f, 200f), 100f, 20f))
        assertEquals(Box(300f, 360f, 400f, 380f), labels.place(symbol(395f, 390f), 100f, 20f))
        assertNull(labels.place(symbol(200f, 200f), 401f, 20f))
    }

    @Test
    fun `words that would cover others are left out`() {
        val labels = Labels(400f, 400f)
        val places = List(40) { labels.place(symbol(200f, 200f), 100f, 20f) }
        assertNotNull(places.first())
        assertNull(places.last())
    }

    @Test
    fun `no words cover other words, a symbol or the edge, seed 20261122`() {
        val random = Random(20261122)
        repeat(200) {
            val labels = Labels(400f, 300f)
            val symbols = List(12) { symbol(random.nextFloat() * 400, random.nextFloat() * 300) }
            symbols.forEach(labels::keepFree)
            val words = symbols.mapNotNull { labels.place(it, 40 + random.nextFloat() * 120, 18f) }
            assertTrue(words.size >= 6, "only ${words.size} of 12 have words")
            for ((i, box) in words.withIndex()) {
                assertTrue(box.left >= 0 && box.top >= 0 && box.right <= 400 && box.bottom <= 300, "$box")
                assertTrue((symbols + words.drop(i + 1)).none(box::meets), "$box covers something")
            }
        }
    }
}
