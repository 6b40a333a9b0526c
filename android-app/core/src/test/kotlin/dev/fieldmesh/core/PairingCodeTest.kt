package dev.fieldmesh.core

import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Pin
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** By the example of protocols/pairing, which the Go side tests too. */
class PairingCodeTest {
    private val letters = "AAAQEAYEAUDAOCAJBIFQYDIOB4ASGRLHRGV433YBENCWPCNLZXXXATD3"
    private val text = "FIELDMESH-PAIR/192.168.8.2:7447/$letters"
    private val controller = Pin("0123456789abcdef".repeat(4))
    private val own = Pin("fedcba9876543210".repeat(4))

    @Test
    fun `the example's proofs come out`() {
        val code = assertNotNull(PairingCode.parse(text))
        assertEquals("192.168.8.2" to 7447, code.host to code.port)
        assertTrue(code.fits(controller))
        assertFalse(code.fits(own))
        assertEquals("8bf99f7605caddef4924729dd24f72a3806d8dcf966e818f4fdc193c86ffbdbd", code.joins(controller, own))
        assertEquals(
            "dc449660fd5b0db511349ac15b346df1b17ac9573db6f844e847165a7c0f7765",
            code.admits(controller, own, "phone", "app"),
        )
    }

    @Test
    fun `a code is read as people write it`() {
        val typed = "fieldmesh-pair/192.168.8.2:7447/" + letters.lowercase().chunked(4).joinToString("-") + "\n"
        assertEquals(PairingCode.parse(text)?.joins(controller, own), PairingCode.parse(typed)?.joins(controller, own))
        assertEquals("fe80::1", PairingCode.parse("FIELDMESH-PAIR/[FE80::1]:1/$letters")?.host)
        assertTrue(PairingCode.isMeant(" fieldmesh-pair/x"))
        assertFalse(PairingCode.isMeant("fieldmesh:h:1#00"))
    }

    @Test
    fun `every mistyped letter is noticed`() {
        val start = text.lastIndexOf('/') + 1
        for (i in start until text.length) {
            for (letter in ('A'..'Z') + ('2'..'7')) {
                if (letter !=
                    text[i]
                ) {
                    assertNull(PairingCode.parse(text.replaceRange(i, i + 1, "$letter")), "letter $i")
                }
            }
        }
        for (bad in listOf(
            "",
            "FIELDMESH-PAIR//$letters",
            "FIELDMESH-PAIR/a:0/$letters",
            "FIELDMESH-PAIR/a:99999/$letters",
            "FIELDMESH-PAIR/192.168.8..2:7447/$letters",
            "FIELDMESH-PAIR/[FD00::1::2]:7447/$letters",
            text.dropLast(1),
            text + "A",
        )) {
            assertNull(PairingCode.parse(bad), bad)
        }
    }
}
