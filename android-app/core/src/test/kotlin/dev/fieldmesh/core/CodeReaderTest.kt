package dev.fieldmesh.core

import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.scan.CodeReader
import dev.fieldmesh.core.scan.GrayPicture
import java.io.File
import java.nio.ByteBuffer
import java.util.Random
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertNull

/** The picture that `fieldmesh keys pair` prints, which the Go side tests too, read as the camera's pictures are. */
class CodeReaderTest {
    private val picture =
        TerminalPicture(File(System.getProperty("fieldmesh.golden"), "../../pairing/golden/picture.txt").readText())
    private val text = "FIELDMESH-PAIR/192.168.8.2:7447/AAAQEAYEAUDAOCAJBIFQYDIOB4ASGRLHRGV433YBENCWPCNLZXXXATD3"

    @Test
    fun `the code is read however the phone is held`() {
        val views = mapOf(
            "straight" to View(),
            "small" to View(module = 4.0),
            "large" to View(module = 13.0),
            "on a light terminal" to View(darkOnLight = true),
            "turned a little" to View(turnDeg = 17.0),
            "on its side, in portrait" to View(width = 720, height = 1280, turnDeg = 90.0),
            "upside down" to View(turnDeg = 180.0, padding = 64),
            "askew" to View(turnDeg = -33.0, module = 8.0),
            "from below" to View(lean = 0.1, module = 8.0),
            "tall letters" to View(tall = 1.2, module = 8.0),
            "gaps between lines" to View(lineGap = 0.06),
            "noise of a dark room" to View(noise = 30.0),
            "half in the shade" to View(shade = 0.6),
            "padded rows" to View(width = 1000, padding = 24),
            "all at once" to
                View(turnDeg = 12.0, lean = 0.08, tall = 1.1, noise = 15.0, shade = 0.4, module = 9.0, padding = 32),
            "all at once, light" to
                View(turnDeg = -70.0, lean = 0.08, noise = 15.0, shade = 0.4, module = 9.0, darkOnLight = true),
        )
        for ((name, view) in views) assertEquals(text, CodeReader.read(picture.seen(view)), name)
        assertNotNull(PairingCode.parse(text))
    }

    @Test
    fun `property - at any angle`() {
        val random = Random(5)
        repeat(12) { n ->
            val view = View(
                width = 960,
                height = 720,
                module = 6 + random.nextDouble() * 4,
                turnDeg = random.nextDouble() * 360,
                lean = random.nextDouble() * 0.1,
                noise = random.nextDouble() * 12,
                darkOnLight = n % 2 == 1,
            )
            assertEquals(text, CodeReader.read(picture.seen(view, seed = n.toLong())), "$view")
        }
    }

    @Test
    fun `where no code is nothing is read`() {
        assertNull(CodeReader.read(TerminalPicture("no\ncode").seen(View())))
        assertNull(CodeReader.read(picture.seen(View(module = 0.8))), "too far away")
        val noise = ByteArray(640 * 480).also(Random(3)::nextBytes)
        assertNull(CodeReader.read(GrayPicture(noise, 640, 480)))
        assertNull(CodeReader.read(GrayPicture(ByteArray(1), 1, 1)))
    }

    @Test
    fun `a plane that is too short is no picture`() {
        assertFailsWith<RuntimeException> { GrayPicture.of(ByteBuffer.allocate(99), 10, 10, 10) }
        assertFailsWith<IllegalArgumentException> { GrayPicture(ByteArray(99), 10, 10) }
    }
}
