package dev.fieldmesh.core.agent

import java.security.MessageDigest
import java.util.Locale
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

/**
 * The one-time code of `fieldmesh keys pair`: where the controller waits, the
 * first half of the pin by which it is known, and the secret that shows who was
 * given the code. See protocols/pairing.
 */
class PairingCode private constructor(
    val host: String,
    val port: Int,
    private val secret: ByteArray,
    private val half: ByteArray,
    /** The code as a person would type it. It is a secret. */
    val typed: String,
) {

    /** Whether a pin is the one whose first half the code carries. */
    fun fits(pin: Pin): Boolean = pin.hex.startsWith(half.hex())

    /** What shows the controller that this app was given the code; it is for these two keys only. */
    fun joins(controller: Pin, own: Pin): String = proof("joins", controller, own, "", ROLE)

    /** What shows this app that the controller has made the code. */
    fun admits(controller: Pin, own: Pin, name: String, role: String): String =
        proof("admits", controller, own, name, role)

    private fun proof(vararg parts: Any): String {
        val lines = listOf("fieldmesh pairing 1") + parts.map { if (it is Pin) it.hex else "$it" } + ""
        val mac = Mac.getInstance("HmacSHA256").apply { init(SecretKeySpec(secret, "HmacSHA256")) }
        return mac.doFinal(lines.joinToString("") { "$it\n" }.toByteArray()).hex()
    }

    companion object {
        const val ROLE = "app"
        private const val SCHEME = "FIELDMESH-PAIR/"
        private const val SECRET_BYTES = 16
        private const val HASH_BYTES = 16
        private const val CHECK_BYTES = 3
        private val FORM = Regex("""FIELDMESH-PAIR/(?:\[([0-9A-F:.]+)]|([A-Z0-9.-]+)):([0-9]{1,5})/([A-Z2-7]{56})""")

        /** Whether a text means to be a code, right or not. */
        fun isMeant(text: String): Boolean = upper(text).startsWith(SCHEME)

        /** Reads a code that was typed, pasted or scanned. Null when a letter of it is wrong or missing. */
        fun parse(text: String): PairingCode? {
            val whole = upper(text)
            val body = whole.substringAfterLast('/').replace("-", "")
            val match = FORM.matchEntire(whole.substringBeforeLast('/') + "/" + body) ?: return null
            val (six, name, port, letters) = match.destructured
            val data = base32(letters)
            val said = data.copyOfRange(0, SECRET_BYTES + HASH_BYTES)
            val check = MessageDigest.getInstance("SHA-256").digest(said).copyOf(CHECK_BYTES)
            val host = six.ifEmpty { name }.lowercase(Locale.ROOT)
            // The check letters are not of the address.
            if (port.toInt() !in 1..65535 || !isHost(host)) return null
            if (!check.contentEquals(data.copyOfRange(said.size, data.size))) return null
            val half = said.copyOfRange(SECRET_BYTES, said.size)
            return PairingCode(host, port.toInt(), said.copyOf(SECRET_BYTES), half, whole)
        }

        private fun upper(text: String) = text.filterNot(Char::isWhitespace).uppercase(Locale.ROOT)

        /** RFC 4648, section 6, of whole groups of eight letters. */
        private fun base32(letters: String): ByteArray {
            val out = ByteArray(letters.length * 5 / 8)
            var bits = 0
            var held = 0
            var n = 0
            for (letter in letters) {
                held = held shl 5 or if (letter in 'A'..'Z') letter - 'A' else letter - '2' + 26
                bits += 5
                if (bits >= 8) {
                    bits -= 8
                    out[n++] = (held shr bits).toByte()
                    held = held and (1 shl bits) - 1
                }
            }
            return out
        }
    }
}

private fun ByteArray.hex() = joinToString("") { "%02x".format(it) }
