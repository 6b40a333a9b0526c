package dev.fieldmesh.app

import android.Manifest
import android.content.pm.PackageManager
import android.net.ConnectivityManager
import android.net.Network
import android.net.NetworkCapabilities.NET_CAPABILITY_VALIDATED
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.agent.Subnet
import dev.fieldmesh.core.agent.Way
import kotlinx.coroutines.runBlocking
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowNetwork
import org.robolectric.shadows.ShadowNetworkCapabilities
import java.net.InetAddress
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertSame

/** Over which of the phone's networks a node is called. Nothing answers at the address that is called. */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class)
class NetworkTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp
    private val wifi = ShadowNetwork.newInstance(7)
    private val other = ShadowNetwork.newInstance(8)

    /** What Android calls of the app when networks come and go. */
    private val told by lazy {
        app.session.pair(Pairing("127.0.0.2", 1, Pin("ab".repeat(32)))) // 127.0.0.1 is the phone itself
        shadowOf(app.getSystemService(ConnectivityManager::class.java)).networkCallbacks.single()
    }

    private fun comes(network: Network, hasInternet: Boolean) {
        val can = ShadowNetworkCapabilities.newInstance()
        if (hasInternet) shadowOf(can).addCapability(NET_CAPABILITY_VALIDATED)
        told.onAvailable(network)
        told.onCapabilitiesChanged(network, can)
    }

    /** How many sockets of one call are the network's. */
    private fun sockets(network: Network): Int {
        val before = shadowOf(network).boundSocketCount()
        assertNull(runBlocking { app.session.restore() })
        return shadowOf(network).boundSocketCount() - before
    }

    @Test
    fun `a node is called over the Wi-Fi while it has no internet`() {
        comes(wifi, hasInternet = false)
        assertEquals(1, sockets(wifi))
        comes(wifi, hasInternet = true)
        assertEquals(0, sockets(wifi), "it is Android's own choice now, or a VPN is")
        comes(wifi, hasInternet = false)
        assertEquals(1, sockets(wifi))
        told.onLost(wifi)
        assertEquals(0, sockets(wifi))
    }

    @Test
    fun `of two networks the one that came last is used, and the loss of the other changes nothing`() {
        comes(wifi, hasInternet = false)
        comes(other, hasInternet = false)
        told.onLost(wifi)
        assertEquals(0 to 1, sockets(wifi) to sockets(other))
    }

    @Test
    fun `who is a neighbour on a cable is called over no Wi-Fi`() {
        comes(wifi, hasInternet = false)
        told.onLinkPropertiesChanged(wifi, linkOf("wlan0"))
        app.networks = listOf(subnet("wlan0", "192.168.43.5"), subnet("rndis0", "127.0.0.129"))
        assertEquals(0, sockets(wifi))
        app.networks = listOf(subnet("wlan0", "127.0.0.129"))
        assertEquals(1, sockets(wifi), "that is the Wi-Fi itself")
    }

    @Test
    fun `the Wi-Fi comes first, and who is a neighbour nowhere may be behind another network`() {
        comes(wifi, hasInternet = false)
        assertSame(Way.PREFERRED, app.wifi.way("192.168.43.1").otherwise, "its addresses are not known yet")
        told.onLinkPropertiesChanged(wifi, linkOf("wlan0"))
        app.networks = listOf(subnet("ap0", "192.168.43.6"), subnet("rndis0", "192.168.42.129"))
        assertNull(app.wifi.way("192.168.43.1").otherwise)
        assertSame(app.wifi.way("192.168.43.1"), app.wifi.way("192.168.43.7"), "its connections are kept")
        assertSame(Way.PREFERRED, app.wifi.way("192.168.42.7"))
        for (host in listOf("10.9.0.1", "203.0.113.5", "fd00::1", "laptop.test")) {
            assertSame(Way.PREFERRED, app.wifi.way(host).otherwise, host)
        }
        told.onLost(wifi)
        assertSame(Way.PREFERRED, app.wifi.way("192.168.43.1"))
    }

    @Test
    fun `the phone's own node is called over no network`() {
        comes(wifi, hasInternet = false)
        app.session.pair(Pairing(Pairing.LOOPBACK, 1, Pin("ab".repeat(32))))
        assertEquals(0, sockets(wifi))
    }

    @Test
    fun `a code's controller is asked over the Wi-Fi without internet`() {
        comes(wifi, hasInternet = false)
        val letters = "AAAQEAYEAUDAOCAJBIFQYDIOB4ASGRLHRGV433YBENCWPCNLZXXXATD3"
        val code = assertNotNull(PairingCode.parse("FIELDMESH-PAIR/127.0.0.1:1/$letters"))
        assertFailsWith<AgentException.Unreachable> { runBlocking { app.session.join(code) } }
        assertEquals(1, shadowOf(wifi).boundSocketCount())
    }

    private fun subnet(name: String, address: String) = Subnet(name, InetAddress.getByName(address), 24)

    @Test
    fun `the app may ask for a network`() {
        val own = app.packageManager.getPackageInfo(app.packageName, PackageManager.GET_PERMISSIONS)
        assertContains(own.requestedPermissions.toList(), Manifest.permission.CHANGE_NETWORK_STATE)
    }
}
