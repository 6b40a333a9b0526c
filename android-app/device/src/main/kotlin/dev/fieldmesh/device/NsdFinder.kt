package dev.fieldmesh.device

import android.annotation.TargetApi
import android.net.nsd.NsdManager
import android.net.nsd.NsdServiceInfo
import android.net.wifi.WifiManager
import android.os.Build
import dev.fieldmesh.core.agent.Finder
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Service
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.channels.awaitClose
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.callbackFlow
import kotlinx.coroutines.launch
import kotlinx.coroutines.suspendCancellableCoroutine
import java.net.Inet4Address
import java.net.InetAddress
import kotlin.coroutines.resume

/** Android's DNS-SD. Answers come to a Wi-Fi that sleeps only while somebody holds a lock. */
class NsdFinder(private val services: NsdManager, private val wifi: WifiManager) : Finder {

    override fun peers(): Flow<Pairing> = callbackFlow {
        val named = Channel<NsdServiceInfo>(NAMED_MOST)
        val listener = object : NsdManager.DiscoveryListener {
            override fun onServiceFound(service: NsdServiceInfo) {
                named.trySend(service)
            }

            override fun onStartDiscoveryFailed(type: String, error: Int) {
                close()
            }

            override fun onDiscoveryStarted(type: String) = Unit
            override fun onServiceLost(service: NsdServiceInfo) = Unit
            override fun onDiscoveryStopped(type: String) = Unit
            override fun onStopDiscoveryFailed(type: String, error: Int) = Unit
        }
        val lock = wifi.createMulticastLock("fieldmesh:discovery").apply { acquire() }
        try {
            services.discoverServices(Service.TYPE, NsdManager.PROTOCOL_DNS_SD, listener)
            launch {
                // One after the other: before Android 14 a second question is refused while the first is open.
                for (service in named) resolve(service)?.let { peer(it)?.let(::trySend) }
            }
            awaitClose()
        } finally {
            stop(listener)
            lock.release()
        }
    }

    private fun stop(listener: NsdManager.DiscoveryListener) = try {
        services.stopServiceDiscovery(listener)
    } catch (_: IllegalArgumentException) {
        // It did not start.
    }

    // What replaces it since Android 14 goes on telling, and is not there before.
    @Suppress("DEPRECATION")
    private suspend fun resolve(service: NsdServiceInfo): NsdServiceInfo? = suspendCancellableCoroutine { waiting ->
        services.resolveService(
            service,
            object : NsdManager.ResolveListener {
                override fun onResolveFailed(service: NsdServiceInfo, error: Int) = waiting.resume(null)

                override fun onServiceResolved(service: NsdServiceInfo) = waiting.resume(service)
            },
        )
    }

    private fun peer(service: NsdServiceInfo): Pairing? {
        val address = addresses(service).find { it is Inet4Address }
        return Service.read(address?.hostAddress, service.port, service.attributes[Service.PIN])
    }

    @Suppress("DEPRECATION")
    private fun addresses(service: NsdServiceInfo): List<InetAddress> =
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.UPSIDE_DOWN_CAKE) all(service) else listOfNotNull(service.host)

    @TargetApi(Build.VERSION_CODES.UPSIDE_DOWN_CAKE)
    private fun all(service: NsdServiceInfo): List<InetAddress> = service.hostAddresses

    private companion object {
        /** How many services wait to be asked for. */
        const val NAMED_MOST = 32
    }
}
