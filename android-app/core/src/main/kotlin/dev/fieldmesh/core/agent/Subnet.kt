package dev.fieldmesh.core.agent

import java.net.InetAddress
import java.net.NetworkInterface
import java.net.SocketException
import java.net.UnknownHostException

/** The network that this phone is in by an [address] of one of its interfaces. */
data class Subnet(val interfaceName: String?, val address: InetAddress, val prefixBits: Int) {

    /** Whether [host] is in it. */
    operator fun contains(host: InetAddress): Boolean {
        val (own, other) = address.address to host.address
        return own.size == other.size && prefixBits > 0 && (0 until prefixBits).all { own.bit(it) == other.bit(it) }
    }

    private fun ByteArray.bit(n: Int) = get(n / 8).toInt() shr (7 - n % 8) and 1

    companion object {
        /** Those of all interfaces, whether Android takes them for networks or not, as a cable's. */
        fun all(): List<Subnet> = try {
            NetworkInterface.getNetworkInterfaces()?.toList().orEmpty().filterNot { it.isLoopback }.flatMap(::of)
        } catch (_: SocketException) {
            emptyList()
        }

        private fun of(it: NetworkInterface) =
            it.interfaceAddresses.map { at -> Subnet(it.name, at.address, at.networkPrefixLength.toInt()) }
    }
}

/** The address that [host] is written as; null where it is a name, which nobody is asked about. */
fun addressOf(host: String): InetAddress? = try {
    if (':' in host || FOUR.matches(host)) InetAddress.getByName(host) else null
} catch (_: UnknownHostException) {
    null
}

private val FOUR = Regex("""($OCTET\.){3}$OCTET""")
private const val OCTET = """(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"""
