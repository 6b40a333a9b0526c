package dev.fieldmesh.app

import android.app.ForegroundServiceStartNotAllowedException
import android.app.Notification
import android.content.Intent
import android.net.ConnectivityManager
import android.net.LinkAddress
import android.net.LinkProperties
import android.net.wifi.WifiInfo
import android.net.wifi.WifiManager
import android.view.View
import android.widget.EditText
import android.widget.Switch
import android.widget.TextView
import dev.fieldmesh.core.agent.Admission
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.FleetNode
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.core.node.NodeState
import dev.fieldmesh.core.node.OwnAgent
import dev.fieldmesh.core.pem
import dev.fieldmesh.core.wire.WireError
import dev.fieldmesh.device.NodeService
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.android.controller.ServiceController
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowAlertDialog
import org.robolectric.shadows.ShadowNetwork
import org.robolectric.shadows.ShadowToast
import java.io.File
import java.time.Duration
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** A Wi-Fi as Android reports it. */
internal fun linkOf(name: String) = LinkProperties().apply {
    interfaceName = name
    setLinkAddresses(listOf(linkAddress("fe80::1/64"), linkAddress("192.168.43.5/24")))
}

/** Its constructor is hidden. */
private fun linkAddress(text: String): LinkAddress =
    LinkAddress::class.java.getConstructor(String::class.java).newInstance(text)

/** The service that makes this phone a node. Its agent is a shell's script that says what an agent says. */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class NodeTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp
    private val lives get() = File(app.filesDir, "lives")
    private val home get() = File(app.noBackupFilesDir, "node")

    private fun put(does: String) {
        app.programs.mkdirs()
        for (name in listOf(OwnAgent.AGENT, OwnAgent.IPERF3)) {
            val program = File(app.programs, name)
            program.writeText("#!/bin/sh\necho begun >>'$lives'\n$does\n")
            program.setExecutable(true)
        }
    }

    private fun awaits(what: String, reached: () -> Boolean) {
        val before = System.nanoTime() + 30_000_000_000
        while (!reached()) {
            assertTrue(System.nanoTime() < before, "$what: ${app.keeper.state.value}, ${app.keeper.said}")
            Thread.sleep(10)
            shadowOf(app.mainLooper).idleFor(Duration.ofMillis(100))
        }
    }

    private fun service(): ServiceController<NodeService> = Robolectric.buildService(NodeService::class.java).create()

    @Test
    fun `the service starts the agent, and again after its process ended, until a person stops it`() {
        put(RUNS)
        app.preferences.nodeWanted = true
        val first = service().startCommand(0, 1)
        assertNotNull(shadowOf(first.get()).lastForegroundNotification)
        awaits("the node runs") { app.keeper.state.value is NodeState.Running }
        first.destroy()
        awaits("the node ends") { app.keeper.state.value == NodeState.Off }
        assertContains(lives.readText(), "in order")

        val second = service()
        second.get().onStartCommand(null, 0, 1) // as Android starts an ended one again
        awaits("the node runs again") { app.keeper.state.value is NodeState.Running }
        second.get().onStartCommand(Intent("dev.fieldmesh.STOP"), 0, 2)
        assertTrue(shadowOf(second.get()).isStoppedBySelf)
        assertFalse(app.preferences.nodeWanted)
        second.destroy()
        awaits("the node ends again") { app.keeper.state.value == NodeState.Off }

        val third = service()
        third.get().onStartCommand(null, 0, 1)
        assertTrue(shadowOf(third.get()).isStoppedBySelf, "nobody wants it")
        third.destroy()
        assertEquals(2, lives.readLines().count { it == "begun" })
    }

    /** Whose start Android forbids. */
    class Forbidden : NodeService() {
        override fun enterForeground(notification: Notification) =
            throw ForegroundServiceStartNotAllowedException("the app is in the background")
    }

    @Test
    fun `a start that Android forbids ends in peace, and the next opening makes up for it`() {
        put(RUNS)
        app.preferences.nodeWanted = true
        val service = Robolectric.buildService(Forbidden::class.java).create()
        service.get().onStartCommand(null, 0, 1)
        assertTrue(shadowOf(service.get()).isStoppedBySelf)
        service.destroy()
        assertEquals(NodeState.Off, app.keeper.state.value)
        Robolectric.buildActivity(MainActivity::class.java).setup()
        assertEquals(NodeService::class.java.name, shadowOf(app).nextStartedService?.component?.className)
    }

    @Test
    fun `an agent that dies is told with its last word, and begun again`() {
        put("echo no space left; exit 1")
        app.preferences.nodeWanted = true
        val service = service().startCommand(0, 1)
        awaits("its end is told") { app.keeper.state.value == NodeState.Failing("no space left", 1) }
        awaits("it begins again") { lives.readLines().size >= 3 }
        service.destroy()
        awaits("it ends") { app.keeper.state.value == NodeState.Off }
    }

    private fun opened(): MainActivity {
        val activity = Robolectric.buildActivity(MainActivity::class.java).setup().get()
        activity.findViewById<View>(R.id.tab_node).performClick()
        return activity
    }

    private val MainActivity.told get() = findViewById<TextView>(R.id.own_state).text.toString()

    @Test
    fun `an app without the programs says so, and starts nothing`() {
        val activity = opened()
        assertEquals(app.getString(R.string.own_absent), activity.told)
        assertFalse(activity.findViewById<View>(R.id.own).isEnabled)
        assertNull(shadowOf(app).nextStartedService)
    }

    @Test
    fun `the switch makes this phone a node by the name that was typed, in the Wi-Fi that it is in`() {
        put("echo 'this node is not paired yet'; cat >/dev/null")
        val activity = opened()
        assertEquals("", activity.told)
        activity.findViewById<EditText>(R.id.own_name).setText("Roof Phone")
        val switch = activity.findViewById<Switch>(R.id.own)
        switch.performClick()
        assertEquals(NodeService::class.java.name, shadowOf(app).nextStartedService?.component?.className)
        val service = service().startCommand(0, 1)
        awaits("it waits for its keys") { "fieldmesh keys pair roof-phone" in activity.told }
        assertContains(activity.told, app.getString(R.string.own_no_wifi))

        val wifi = ShadowNetwork.newInstance(7)
        val callback = shadowOf(app.getSystemService(ConnectivityManager::class.java)).networkCallbacks.single()
        callback.onLinkPropertiesChanged(wifi, linkOf("wlan1"))
        awaits("the agent is told") { "interface: \"wlan1\"\n" in File(home, "agent.yaml").readText() }
        awaits("it waits for its keys again") { app.keeper.state.value == NodeState.Unpaired }
        assertEquals("wlan1", app.preferences.wifiInterface)
        callback.onLost(ShadowNetwork.newInstance(8))
        awaits("the address is told") { "192.168.43.5/24" in activity.told }
        callback.onLost(wifi)
        awaits("its loss is told") { app.getString(R.string.own_no_wifi) in activity.told }
        assertIs<NodeState.Unpaired>(app.keeper.state.value, "out of reach the node goes on")

        switch.performClick()
        assertFalse(app.preferences.nodeWanted)
        service.get().onStartCommand(shadowOf(app).nextStartedService, 0, 2)
        assertTrue(shadowOf(service.get()).isStoppedBySelf)
        service.destroy()
        awaits("it ends") { app.keeper.state.value == NodeState.Off && activity.told == "" }
    }

    private fun MainActivity.press(id: Int) {
        findViewById<View>(id).performClick()
        shadowOf(app.mainLooper).idle()
    }

    private fun MainActivity.sees(id: Int) = findViewById<View>(id).visibility == View.VISIBLE

    private fun MainActivity.type(code: String) {
        press(R.id.tab_pair)
        findViewById<EditText>(R.id.line).setText(code)
        press(R.id.pair)
    }

    private val own by lazy { newIdentity("node") }
    private val ofOwn get() = Pairing(Pairing.LOOPBACK, 7443, own.pin)

    /** An agent that a code pairs, a service that keeps it, and a controller whose codes are for nodes. */
    private fun pairable(): ServiceController<NodeService> {
        put(PAIRS)
        File(app.filesDir, "node.crt").writeText(own.pem)
        app.controller = { throw AgentException.Refused(WireError("conflict", "the code is for a node")) }
        app.preferences.nodeWanted = true
        return service().startCommand(0, 1).also { awaitsKeys() }
    }

    private fun awaitsKeys() = awaits("it waits for its keys") { app.keeper.state.value == NodeState.Unpaired }

    private fun go() = File(app.filesDir, "go").createNewFile()

    private fun runs() = awaits("it runs") { app.keeper.state.value is NodeState.Running }

    @Test
    fun `a node's code pairs the node, and the app with it, also when the screen is left meanwhile`() {
        val service = pairable()
        val screen = Robolectric.buildActivity(MainActivity::class.java).setup()
        screen.get().type(CODE)
        screen.pause().stop().destroy()
        go()
        awaits("the app is paired") { app.session.pairing == ofOwn }
        runs()
        Robolectric.buildActivity(MainActivity::class.java).setup()
        val told = app.getString(R.string.pair_with, app.nodeName)
        awaits("it is told") { ShadowToast.getTextOfLatestToast() == told }
        service.destroy()
    }

    /** Android's Wi-Fi as it is at the moment; null is its word for unknown. */
    private fun android(rssi: Int?, txMbps: Int? = null, rxMbps: Int? = null) {
        val info = WifiInfo.Builder().setBssid("02:11:22:33:44:77").setRssi(rssi ?: -127).build()
        val set = { name: String, value: Int ->
            WifiInfo::class.java.getMethod(name, Int::class.java).invoke(info, value)
        }
        set("setTxLinkSpeedMbps", txMbps ?: WifiInfo.LINK_SPEED_UNKNOWN)
        set("setRxLinkSpeedMbps", rxMbps ?: WifiInfo.LINK_SPEED_UNKNOWN)
        set("setFrequency", 5180)
        shadowOf(app.getSystemService(WifiManager::class.java)).setConnectionInfo(info)
    }

    @Test
    fun `the node is told what Android says of the Wi-Fi when that has changed, as long as the service runs`() {
        android(-60)
        val service = pairable()
        go()
        opened().type(CODE)
        runs()
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(2))
        assertEquals(emptyList(), app.told, "of when it is, is not known")
        android(-61, txMbps = 286)
        awaits("it is told") { app.told.isNotEmpty() }
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(10))
        val one = app.told.single()
        assertEquals(listOf(-61.0, 286.0, null), listOf(one.signalDbm, one.txBitrateMbps, one.rxBitrateMbps))
        assertEquals(5180, one.frequencyMhz)
        assertEquals(500.0, one.renewedWithinMs)
        android(null)
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(2))
        android(-70)
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(2))
        assertEquals(1, app.told.size, "an unknown signal is none, and the first of a Wi-Fi is of no known time")
        app.session.unpair()
        android(-71)
        awaits("it is told also when the app follows no node") { app.told.size == 2 }
        service.destroy()
        awaits("it ends") { app.keeper.state.value == NodeState.Off }
        android(-72)
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(2))
        assertEquals(2, app.told.size)
    }

    @Test
    fun `what the agent says of a code is told`() {
        val service = pairable()
        File(app.filesDir, "node.crt").delete()
        go()
        opened().type(CODE)
        awaits("it is told") { ShadowToast.getTextOfLatestToast()?.contains("node.crt") == true }
        assertNull(app.session.pairing)
        service.destroy()
    }

    @Test
    fun `a node whose app was paired with another is forgotten by itself, and takes a code again`() {
        val service = pairable()
        go()
        val activity = opened()
        assertFalse(activity.sees(R.id.own_forget), "there is nothing to forget")
        activity.type(CODE)
        runs()
        val other = Pairing("127.0.0.2", 1, Pin("ab".repeat(32)))
        activity.type(other.toString())
        activity.type(CODE)
        awaits("the cure is told") { ShadowToast.getTextOfLatestToast() == app.getString(R.string.own_is_paired) }
        activity.press(R.id.tab_node)
        assertFalse(activity.sees(R.id.own_follow))
        activity.press(R.id.own_forget)
        assertTrue(app.agent.isPaired, "it is asked for once more")
        activity.press(R.id.own_forget)
        assertFalse(app.agent.isPaired)
        assertEquals(other, app.session.pairing)
        awaitsKeys()
        activity.type(CODE)
        awaits("the app is paired") { app.session.pairing == ofOwn }
        runs()
        service.destroy()
    }

    @Test
    fun `unpairing the app from its own node is asked twice, and has the node forget`() {
        val service = pairable()
        go()
        val activity = opened()
        activity.type(CODE)
        runs()
        val controller = Pairing("127.0.0.2", 7448, Pin("cd".repeat(32)))
        app.experiment.pair(controller)
        activity.press(R.id.unpair)
        assertEquals(ofOwn, app.session.pairing)
        assertEquals(
            app.getString(R.string.own_forget_sure),
            activity.findViewById<TextView>(R.id.unpair).text.toString(),
        )
        activity.press(R.id.unpair)
        assertNull(app.session.pairing)
        assertFalse(app.agent.isPaired)
        assertEquals(controller, app.experiment.pairing, "an experimenter's role is not the node's")
        awaitsKeys()
        service.destroy()
    }

    @Test
    fun `the app's own node is called over no network, however the app was paired with it`() {
        val service = pairable()
        go()
        val activity = opened()
        activity.type(CODE)
        runs()
        val inWifi = FleetNode("alpha", Pairing("192.168.1.5", 7443, own.pin))
        val other = FleetNode("bravo", Pairing("192.168.1.6", 7443, Pin("ab".repeat(32))))
        app.controller = { Admission(listOf(inWifi)) }
        activity.type(CODE)
        assertEquals(ofOwn, app.session.pairing, "by a code of a fleet of one node")
        app.controller = { Admission(listOf(inWifi, other)) }
        activity.type(CODE)
        for ((n, pairing) in listOf(1 to other.pairing, 0 to ofOwn)) {
            activity.press(R.id.choose)
            shadowOf(ShadowAlertDialog.getLatestAlertDialog()).clickOnItem(n)
            assertEquals(pairing, app.session.pairing, "by a choice")
        }
        activity.type(inWifi.pairing.toString())
        assertEquals(ofOwn, app.session.pairing, "by a line")
        app.preferences.pairing = inWifi.pairing
        app.die()
        assertEquals(ofOwn, app.session.pairing, "by an app of before")
        service.destroy()
    }

    @Test
    fun `an app that follows no node is offered its own`() {
        val service = pairable()
        go()
        val activity = opened()
        activity.type(CODE)
        runs()
        app.session.unpair()
        activity.press(R.id.tab_node)
        activity.press(R.id.own_follow)
        assertEquals(ofOwn, app.session.pairing)
        assertFalse(activity.sees(R.id.own_follow))
        service.destroy()
    }

    @Test
    fun `a node that Android ends is told so, and what it said can be shared`() {
        put("echo 'msg=\"node is ready\"'; kill -KILL $$")
        app.preferences.nodeWanted = true
        val service = service().startCommand(0, 1)
        val activity = opened()
        awaits("the signal is told") { "SIGKILL" in activity.told }
        activity.press(R.id.own_share)
        val chooser = assertNotNull(shadowOf(app).nextStartedActivity)
        val shared = chooser.getParcelableExtra(Intent.EXTRA_INTENT, Intent::class.java)
        assertContains(shared?.getStringExtra(Intent.EXTRA_TEXT).orEmpty(), "The app: it ended with status 137.")
        service.destroy()
    }

    @Test
    fun `a node that is wanted can be switched off in a build without programs`() {
        app.preferences.nodeWanted = true
        val switch = opened().findViewById<Switch>(R.id.own)
        assertTrue(switch.isEnabled && switch.isChecked)
        switch.performClick()
        assertFalse(app.preferences.nodeWanted)
        assertFalse(switch.isEnabled)
    }

    private companion object {
        const val CODE = "FIELDMESH-PAIR/127.0.0.1:1/AAAQEAYEAUDAOCAJBIFQYDIOB4ASGRLHRGV433YBENCWPCNLZXXXATD3"
        const val PAIRS = """
            here=${'$'}(dirname ${'$'}0)/..
            case ${'$'}1 in
            up) [ -e keys ] && echo 'msg="node is ready"' || echo 'this node is not paired yet'; cat >/dev/null ;;
            pair) read code; while [ ! -e ${'$'}here/go ]; do sleep 0.05; done
                cp ${'$'}here/node.crt . && mkdir keys && mv node.crt keys ;;
            esac"""
        const val RUNS = "echo 'msg=\"node is ready\"'; cat >/dev/null; echo in order >>\"\$(dirname \$0)/../lives\""
    }
}
