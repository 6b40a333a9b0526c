package dev.fieldmesh.device

import android.net.ConnectivityManager
import android.net.LinkProperties
import android.net.Network
import android.net.NetworkCapabilities
import android.net.NetworkRequest
import dev.fieldmesh.core.agent.Subnet
import dev.fieldmesh.core.agent.Way
import dev.fieldmesh.core.agent.addressOf
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import java.net.Inet4Address

/** This phone in a Wi-Fi: by which interface, and by which address, written with the length of its network's prefix. */
data class WifiLink(val interfaceName: String, val address: String?)

/**
 * Leads calls over the phone's Wi-Fi while that has no internet, as that of a hotspot or of a mesh: Android sends
 * what apps say over mobile data then, where no node is, and leaves such a Wi-Fi that nobody asks for. Any other
 * network is left to Android's choice, so that a VPN stays in use. [subnets] are those of all interfaces.
 */
class LocalWifi(private val manager: ConnectivityManager, private val subnets: () -> List<Subnet>) :
    ConnectivityManager.NetworkCallback() {
    /** A Wi-Fi without internet, and the ways over it: to its neighbours, and to peers that may be elsewhere. */
    private class Local(val network: Network) {
        val near = way(null)
        val far = way(Way.PREFERRED)

        private fun way(otherwise: Way?) = Way(network.socketFactory, otherwise) { network.getAllByName(it).toList() }
    }

    private class Linked(val network: Network, val interfaceName: String?, val subnets: List<Subnet>)

    @Volatile
    private var local: Local? = null

    @Volatile
    private var linked: Linked? = null
    private val found = MutableStateFlow<WifiLink?>(null)

    /** The Wi-Fi that the phone is in, with internet or without; null while it is in none. */
    val link: StateFlow<WifiLink?> = found.asStateFlow()

    /** Whether the phone is in a Wi-Fi without internet. */
    val isLocal get() = local != null

    fun start() {
        val wifi = NetworkRequest.Builder()
            .addTransportType(NetworkCapabilities.TRANSPORT_WIFI)
            .removeCapability(NetworkCapabilities.NET_CAPABILITY_INTERNET)
            .build()
        manager.requestNetwork(wifi, this)
    }

    /**
     * The way of the moment to a host; may be asked from any thread. A neighbour in another network of the phone's, as
     * on a cable, is left to Android, which knows that network; one that is a neighbour nowhere may be behind any.
     */
    fun way(host: String): Way {
        val over = local ?: return Way.PREFERRED
        val wifi = linked?.takeIf { it.network == over.network } ?: return over.far
        val address = addressOf(host) ?: return over.far
        return when {
            wifi.subnets.any { address in it } -> over.near
            subnets().any { it.interfaceName != wifi.interfaceName && address in it } -> Way.PREFERRED
            else -> over.far
        }
    }

    /** Android calls it when a network has come, and when it finds internet in it, or none any more. */
    override fun onCapabilitiesChanged(network: Network, capabilities: NetworkCapabilities) {
        val isLocal = !capabilities.hasCapability(NetworkCapabilities.NET_CAPABILITY_VALIDATED)
        follow(network.takeIf { isLocal })
    }

    override fun onLinkPropertiesChanged(network: Network, properties: LinkProperties) {
        val name = properties.interfaceName
        linked = Linked(network, name, properties.linkAddresses.map { Subnet(name, it.address, it.prefixLength) })
        val own = properties.linkAddresses.find { it.address is Inet4Address }
        val address = own?.let { "${it.address.hostAddress}/${it.prefixLength}" }
        found.value = name?.let { WifiLink(it, address) }
    }

    override fun onLost(network: Network) {
        if (network == linked?.network) {
            linked = null
            found.value = null
        }
        if (network == local?.network) follow(null)
    }

    private fun follow(newest: Network?) {
        if (newest != local?.network) local = newest?.let(::Local)
    }
}
