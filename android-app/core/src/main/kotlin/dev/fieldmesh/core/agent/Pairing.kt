package dev.fieldmesh.core.agent

import okhttp3.HttpUrl

/**
 * A node or controller that the app is paired with: where it answers, and the key that it
 * must show. Written and scanned as one line, `fieldmesh:HOST:PORT#PIN`.
 */
data class Pairing(val host: String, val port: Int, val pin: Pin) {

    override fun toString(): String = "$SCHEME${if (':' in host) "[$host]" else host}:$port#${pin.hex}"

    companion object {
        /** The address of this phone itself. */
        const val LOOPBACK = "127.0.0.1"
        private const val SCHEME = "fieldmesh:"
        private val FORM =
            Regex("""fieldmesh:(?:\[([0-9A-Fa-f:.]+)]|([A-Za-z0-9._-]+)):([0-9]{1,5})#([0-9A-Fa-f]{64})""")

        /**
         * Reads a line that was typed, pasted or scanned; blanks in and around it do not matter. Null when it
         * is none.
         */
        fun parse(text: String): Pairing? {
            val match = FORM.matchEntire(text.filterNot(Char::isWhitespace)) ?: return null
            val (six, name, port, pin) = match.destructured
            val number = port.toInt()
            val host = six.ifEmpty { name }
            if (number !in 1..65535 || !isHost(host)) return null
            return Pairing(host, number, Pin(pin.lowercase()))
        }
    }
}

/** Whether a text of the right letters is an address or name that can be called. */
internal fun isHost(text: String): Boolean = try {
    HttpUrl.Builder().host(text)
    true
} catch (_: IllegalArgumentException) {
    false
}

/** A node of the fleet that the app may be paired with. */
data class FleetNode(val name: String, val pairing: Pairing)

/**
 * What a code gave the app: the nodes that let it in, and the controller that serves it if it is an experimenter's.
 * [beyond] are the names of nodes at addresses that this app cannot call.
 */
data class Admission(
    val nodes: List<FleetNode>,
    val controller: Pairing? = null,
    val beyond: List<String> = emptyList(),
)
