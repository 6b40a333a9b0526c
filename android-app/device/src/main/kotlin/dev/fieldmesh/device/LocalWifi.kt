package dev.fieldmesh.device

import android.net.ConnectivityManager
import android.net.Network
import android.net.NetworkCapabilities
import android.net.NetworkRequest
import dev.fieldmesh.core.agent.Way

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

    override fun onLost(network: Network) {
        if (network == this.network) follow(null)
    }

    private fun follow(newest: Network?) {
        if (newest == network) return
        network = newest
        way = newest?.run { Way(socketFactory) { getAllByName(it).toList() } } ?: Way.PREFERRED
    }
}
