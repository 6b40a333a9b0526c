package dev.fieldmesh.app

import android.Manifest
import android.content.pm.PackageManager
import android.net.nsd.NsdManager
import android.net.nsd.NsdServiceInfo
import android.net.wifi.WifiManager
import android.os.Build
import dev.fieldmesh.core.TlsServer
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.core.send
import dev.fieldmesh.device.NsdFinder
import dev.fieldmesh.device.Preferences
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancel
import kotlinx.coroutines.launch
import org.junit.After
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.annotation.Implementation
import org.robolectric.annotation.Implements
import org.robolectric.shadow.api.Shadow
import org.robolectric.shadows.ShadowNsdManager
import org.robolectric.util.ReflectionHelpers
import java.io.IOException
import java.net.InetAddress
import java.time.Duration
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** Android's DNS-SD as the test would have it: it answers when it is told to. */
@Implements(NsdManager::class)
class ShadowServices : ShadowNsdManager() {
    var type: String? = null
    var looking: NsdManager.DiscoveryListener? = null
    private var asked: Pair<NsdServiceInfo, NsdManager.ResolveListener>? = null

    @Implementation
    @Suppress("UNUSED_PARAMETER")
    fun discoverServices(type: String, protocol: Int, listener: NsdManager.DiscoveryListener) {
        this.type = type
        looking = listener
    }

    @Implementation
    fun resolveService(service: NsdServiceInfo, listener: NsdManager.ResolveListener) {
        check(asked == null) { "two are asked for at a time, which Android 13 refuses" }
        asked = service to listener
    }

    @Implementation
    fun stopServiceDiscovery(listener: NsdManager.DiscoveryListener) {
        require(looking == listener) { "it is not looked for" }
        looking = null
    }

    /** Answers what is asked, with null by a failure. */
    fun answer(known: (NsdServiceInfo) -> NsdServiceInfo?) {
        val (service, listener) = checkNotNull(asked) { "nothing is asked" }
        asked = null
        known(service)?.let(listener::onServiceResolved)
            ?: listener.onResolveFailed(service, NsdManager.FAILURE_INTERNAL_ERROR)
    }
}

/** How the phone finds a node again whose address has changed. */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class, shadows = [ShadowServices::class])
class DiscoveryTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp
    private val services = Shadow.newInstanceOf(NsdManager::class.java)
    private val shadow = Shadow.extract<ShadowServices>(services)
    private val wifi get() = app.getSystemService(WifiManager::class.java)
    private val pin = Pin("ab".repeat(32))
    private val found = mutableListOf<Pairing>()
    private val looking = CoroutineScope(Dispatchers.Unconfined)

    @After
    fun end() = looking.cancel()

    private fun look() = looking.launch { NsdFinder(services, wifi).peers().collect(found::add) }

    private fun named(name: String) = NsdServiceInfo().apply { serviceName = name }

    private fun at(vararg hosts: String, pin: String? = this.pin.hex) = NsdServiceInfo().apply {
        hostAddresses = hosts.map(InetAddress::getByName)
        port = 7443
        pin?.let { setAttribute("pin", it) }
    }

    @Test
    fun `each service is asked for in its turn, and what is none of ours is passed over`() {
        look()
        assertEquals("_fieldmesh._tcp", shadow.type)
        val answers = listOf(
            at("fe80::1", "192.168.43.7"),
            null,
            at("192.168.43.8", pin = null),
            at("192.168.43.9", pin = "none"),
            at("fe80::2"),
            at("192.168.43.10"),
        )
        val listener = checkNotNull(shadow.looking)
        answers.indices.forEach { listener.onServiceFound(named("$it")) }
        for (answer in answers) shadow.answer { answer }
        assertEquals(listOf("192.168.43.7", "192.168.43.10").map { Pairing(it, 7443, pin) }, found)
    }

    @Test
    fun `before Android 14 a service has one address`() {
        val now = Build.VERSION.SDK_INT
        ReflectionHelpers.setStaticField(Build.VERSION::class.java, "SDK_INT", Build.VERSION_CODES.TIRAMISU)
        try {
            look()
            shadow.looking?.onServiceFound(named("one"))
            shadow.answer { at("192.168.43.7") }
        } finally {
            ReflectionHelpers.setStaticField(Build.VERSION::class.java, "SDK_INT", now)
        }
        assertEquals(listOf(Pairing("192.168.43.7", 7443, pin)), found)
    }

    @Test
    fun `the Wi-Fi listens for as long as is looked`() {
        val before = shadowOf(wifi).activeLockCount
        val work = look()
        assertEquals(before + 1, shadowOf(wifi).activeLockCount)
        work.cancel()
        assertEquals(before, shadowOf(wifi).activeLockCount)
        assertNull(shadow.looking)
    }

    @Test
    fun `a search that Android does not begin ends`() {
        val before = shadowOf(wifi).activeLockCount
        val work = look()
        val listener = checkNotNull(shadow.looking)
        shadow.looking = null // what does not begin is not to be stopped
        listener.onStartDiscoveryFailed("_fieldmesh._tcp", NsdManager.FAILURE_MAX_LIMIT)
        assertTrue(work.isCompleted)
        assertEquals(before, shadowOf(wifi).activeLockCount)
    }

    @Test
    fun `the app may have the Wi-Fi listen`() {
        val own = app.packageManager.getPackageInfo(app.packageName, PackageManager.GET_PERMISSIONS)
        assertContains(own.requestedPermissions.toList(), Manifest.permission.CHANGE_WIFI_MULTICAST_STATE)
    }

    /** From the node that is lost to the address that the next start begins with; TLS and its keys are real. */
    @Test
    fun `a node at a new address is followed there, and at the next start at once`() {
        val node = newIdentity("node")
        TlsServer(node, app.identity()) { it.send(503, """{"code": "unavailable", "message": "no"}""") }.use { server ->
            app.session.pair(Pairing("127.0.0.2", 1, node.pin))
            val now = Pairing(Pairing.LOOPBACK, server.port, node.pin)
            app.named.tryEmit(Pairing(Pairing.LOOPBACK, server.port, pin)) // another's
            app.named.tryEmit(now)
            shadowOf(app.mainLooper).idle()
            app.heard.tryEmit(Heard.Lost(AgentException.Unreachable(IOException("no route"))))
            var tries = 0
            while (app.session.pairing != now && tries++ < 200) {
                shadowOf(app.mainLooper).idleFor(Duration.ofMillis(100))
                Thread.sleep(50) // for the network, which is real
            }
            assertEquals(now, app.session.pairing)
            assertEquals(now, Preferences(app).pairing)
            app.die()
            assertEquals(now, app.session.pairing)
        }
    }
}
