package dev.fieldmesh.device

import android.net.ConnectivityManager
import android.net.LinkProperties
import android.net.Network
import android.net.NetworkCapabilities
import android.net.NetworkRequest
import dev.fieldmesh.core.agent.Way
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import java.net.Inet4Address

/** This phone in a Wi-Fi: by which interface, and by which address, written with the length of its network's prefix. */
data class WifiLink(val interfaceName: String, val address: String?)

/**
 * Leads calls over the phone's Wi-Fi while that has no internet, as that of a hotspot or of a mesh: Android sends
 * what apps say over mobile data then, where no node is, and leaves such a Wi-Fi that nobody asks for. Any other
 * network is left to Android's choice, so that a VPN stays in use.
 */
class LocalWifi(private val manager: ConnectivityManager) : ConnectivityManager.NetworkCallback() {
    private var network: Network? = null

    /** The way of the moment; may be read from any thread. */
    @Volatile
    var way = Way.PREFERRED
        private set

    private var linked: Network? = null
    private val found = MutableStateFlow<WifiLink?>(null)

    /** The Wi-Fi that the phone is in, with internet or without; null while it is in none. */
    val link: StateFlow<WifiLink?> = found.asStateFlow()

    fun start() {
        val wifi = NetworkRequest.Builder()
            .addTransportType(NetworkCapabilities.TRANSPORT_WIFI)
            .removeCapability(NetworkCapabilities.NET_CAPABILITY_INTERNET)
            .build()
        manager.requestNetwork(wifi, this)
    }

    /** Android calls it when a network has come, and when it finds internet in it, or none any more. */
    override fun onCapabilitiesChanged(network: Network, capabilities: NetworkCapabilities) {
        val isLocal = !capabilities.hasCapability(NetworkCapabilities.NET_CAPABILITY_VALIDATED)
        follow(network.takeIf { isLocal })
    }

    override fun onLinkPropertiesChanged(network: Network, properties: LinkProperties) {
        linked = network
        val own = properties.linkAddresses.find { it.address is Inet4Address }
        val address = own?.let { "${it.address.hostAddress}/${it.prefixLength}" }
        found.value = properties.interfaceName?.let { WifiLink(it, address) }
    }

    override fun onLost(network: Network) {
        if (network == linked) found.value = null
        if (network == this.network) follow(null)
    }

    private fun follow(newest: Network?) {
        if (newest == network) return
        network = newest
        way = newest?.run { Way(socketFactory) { getAllByName(it).toList() } } ?: Way.PREFERRED
    }
}
