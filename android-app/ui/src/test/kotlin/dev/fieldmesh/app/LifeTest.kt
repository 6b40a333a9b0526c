package dev.fieldmesh.app

import android.Manifest
import android.app.Activity.RESULT_OK
import android.app.AlertDialog
import android.content.ContentProvider
import android.content.ContentValues
import android.content.Context
import android.content.DialogInterface.BUTTON_NEUTRAL
import android.content.Intent
import android.content.pm.FeatureInfo
import android.content.pm.PackageManager
import android.location.Location
import android.location.LocationManager
import android.net.Uri
import android.os.Build
import android.os.Bundle
import android.os.ParcelFileDescriptor
import android.os.SystemClock
import android.view.View
import android.widget.EditText
import android.widget.ListView
import android.widget.TextView
import dev.fieldmesh.core.agent.Admission
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.FleetNode
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.agent.WiFiFound
import dev.fieldmesh.core.agent.WiFiLook
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.wire.Record
import dev.fieldmesh.device.LocationService
import dev.fieldmesh.device.PhoneLog
import dev.fieldmesh.device.Preferences
import org.junit.Assume.assumeTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowAlertDialog
import org.robolectric.shadows.ShadowSystemClock
import org.robolectric.shadows.ShadowToast
import java.io.ByteArrayOutputStream
import java.io.File
import java.io.IOException
import java.time.Duration
import kotlin.math.abs
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** What must outlive a rotation, an activity and a process. */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class LifeTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp

    @Test
    fun `no Android without TLS 1_3 takes the app`() {
        assertEquals(Build.VERSION_CODES.Q, app.applicationInfo.minSdkVersion)
    }

    @Test
    fun `a phone without a receiver, a camera, a microphone or Wi-Fi takes the app, for a node has its own`() {
        val own = app.packageManager.getPackageInfo(app.packageName, PackageManager.GET_CONFIGURATIONS)
        val asked = own.reqFeatures.orEmpty().associate { it.name to (it.flags and FeatureInfo.FLAG_REQUIRED) }
        assertEquals(emptyMap(), asked.filterValues { it != 0 })
        val implied =
            listOf("camera", "camera.autofocus", "location", "location.gps", "location.network", "microphone", "wifi")
        assertEquals(implied.map { "android.hardware.$it" }, asked.keys.sortedBy { it })
    }

    @Test
    fun `the version code follows from the version, and is above the number of commits that it once was`() {
        val own = app.packageManager.getPackageInfo(app.packageName, 0)
        val (major, minor, patch) = own.versionName!!.substringBefore('-').split('.').map(String::toLong)
        assertEquals((major * 1000 + minor) * 1000 + patch, own.longVersionCode / 100)
        assertTrue(own.longVersionCode > 9999)
    }

    @Test
    fun `the open screen and what was typed outlive a rotation`() {
        val controller = Robolectric.buildActivity(MainActivity::class.java).setup()
        val first = controller.get()
        first.findViewById<View>(R.id.tab_track).performClick()
        first.findViewById<EditText>(R.id.mark_text).setText("a bus stands")
        RuntimeEnvironment.setQualifiers("+land")
        controller.recreate()
        assertEquals("a bus stands", controller.get().findViewById<EditText>(R.id.mark_text).text.toString())
    }

    @Test
    fun `what was typed outlives the other screens`() {
        val activity = Robolectric.buildActivity(MainActivity::class.java).setup().get()
        val track = activity.findViewById<View>(R.id.tab_track)
        track.performClick()
        activity.findViewById<EditText>(R.id.mark_text).setText("a bus stands")
        for (other in listOf(R.id.tab_drive, R.id.open_settings, R.id.tab_track)) {
            activity.findViewById<View>(other).performClick()
            track.performClick()
            assertEquals("a bus stands", activity.findViewById<EditText>(R.id.mark_text).text.toString())
        }
        activity.findViewById<View>(R.id.mark_drop).performClick()
        activity.findViewById<View>(R.id.tab_drive).performClick()
        track.performClick()
        assertEquals("", activity.findViewById<EditText>(R.id.mark_text).text.toString())
    }

    private fun questionShown(): AlertDialog? = ShadowAlertDialog.getLatestAlertDialog()?.takeIf { it.isShowing }

    @Test
    fun `a question about a trial, and what was typed, outlive a rotation`() {
        app.session.pair(Pairing("127.0.0.1", 1, Pin("ab".repeat(32))))
        shadowOf(app.mainLooper).idle()
        for (told in listOf(Heard.Plan(States.schedule), Heard.View(States.view))) assertTrue(app.heard.tryEmit(told))
        val controller = Robolectric.buildActivity(MainActivity::class.java).setup()
        shadowOf(app.mainLooper).idle()
        controller.get().findViewById<View>(R.id.tab_campaign).performClick()
        controller.get().findViewById<ListView>(R.id.trials).run {
            performItemClick(adapter.getView(4, null, this), 4, getItemIdAtPosition(4))
        }
        questionShown()!!.findViewById<EditText>(R.id.reason).setText("a bus passed")
        RuntimeEnvironment.setQualifiers("+land")
        ShadowAlertDialog.reset()
        controller.recreate()
        shadowOf(app.mainLooper).idle()
        val again = assertNotNull(questionShown())
        assertEquals("a bus passed", again.findViewById<EditText>(R.id.reason).text.toString())
        again.getButton(BUTTON_NEUTRAL).performClick()
        shadowOf(app.mainLooper).idle()
        val kept = Preferences(app).notes.load().orEmpty()
        assertTrue("\"trial\":5,\"attempt\":2" in kept && "a bus passed" in kept, kept)
        ShadowAlertDialog.reset()
        controller.recreate()
        assertNull(questionShown(), "it was answered")
    }

    @Test
    fun `which node is with this phone can be said later, and otherwise, until the app is unpaired`() {
        val nodes = listOf("alpha" to 1, "bravo" to 2).map { (name, port) ->
            FleetNode(name, Pairing("127.0.0.1", port, Pin("ab".repeat(32))))
        }
        app.controller = { Admission(nodes) }
        val first = Robolectric.buildActivity(MainActivity::class.java).setup()
        first.get().findViewById<EditText>(R.id.line).setText(ExperimentTest.CODE)
        first.get().findViewById<View>(R.id.pair).performClick()
        shadowOf(app.mainLooper).idle()
        questionShown()!!.cancel()
        first.pause().stop().destroy()
        app.die()
        val next = Robolectric.buildActivity(MainActivity::class.java).setup().get()
        fun choose(): View? = ArrayList<View>().also {
            next.window.decorView.findViewsWithText(it, app.getString(R.string.pair_which), View.FIND_VIEWS_WITH_TEXT)
        }.singleOrNull { it.isShown }
        for (n in listOf(1, 0)) {
            ShadowAlertDialog.reset()
            next.findViewById<View>(R.id.tab_pair).performClick()
            assertNotNull(choose()).performClick()
            shadowOf(assertNotNull(questionShown())).clickOnItem(n)
            assertEquals(nodes[n].pairing, Preferences(app).pairing)
        }
        next.findViewById<View>(R.id.unpair).performClick()
        assertNull(choose())
    }

    @Test
    fun `what came of a code is told, also of nodes that the phone cannot call and of an answer that it cannot read`() {
        val activity = Robolectric.buildActivity(MainActivity::class.java).setup().get()
        fun told(controller: () -> Admission): String? {
            app.controller = { controller() }
            activity.findViewById<EditText>(R.id.line).setText(ExperimentTest.CODE)
            activity.findViewById<View>(R.id.pair).performClick()
            shadowOf(app.mainLooper).idle()
            return ShadowToast.getTextOfLatestToast()
        }
        val alpha = FleetNode("alpha", Pairing("127.0.0.1", 1, Pin("ab".repeat(32))))
        val beyond = app.getString(R.string.pair_beyond, "bravo, carol")
        assertEquals(beyond, told { Admission(listOf(alpha), beyond = listOf("bravo", "carol")) })
        assertNull(app.session.pairing, "it may be with one of the others")
        shadowOf(assertNotNull(questionShown())).clickOnItem(0)
        assertEquals(alpha.pairing, app.session.pairing)
        assertEquals(beyond, told { Admission(emptyList(), beyond = listOf("bravo", "carol")) })
        assertEquals(app.getString(R.string.pair_with, "alpha"), told { Admission(listOf(alpha)) })
        assertEquals(app.getString(R.string.pair_no_nodes), told { Admission(emptyList()) })
        val unread = AgentException.BadAnswer(IOException("an unknown field"))
        assertEquals(app.getString(R.string.exp_bad_answer), told { throw unread })
        val away = AgentException.Unreachable(IOException("no route"))
        assertEquals(app.getString(R.string.pair_no_controller), told { throw away })
    }

    @Test
    fun `a pairing with what is no address is refused, and one that was kept hinders no start`() {
        val bad = "fieldmesh:192.168.1..5:7443#" + "ab".repeat(32)
        app.getSharedPreferences("fieldmesh", Context.MODE_PRIVATE).edit().putString("pairing", bad).commit()
        val activity = Robolectric.buildActivity(MainActivity::class.java).setup().get()
        assertNull(app.session.pairing)
        activity.findViewById<EditText>(R.id.line).setText(bad)
        activity.findViewById<View>(R.id.pair).performClick()
        assertEquals(View.VISIBLE, activity.findViewById<TextView>(R.id.pair_error).visibility)
    }

    @Test
    fun `the open screen outlives its process`() {
        val saved = Bundle()
        val controller = Robolectric.buildActivity(MainActivity::class.java).setup()
        controller.get().findViewById<View>(R.id.tab_node).performClick()
        controller.saveInstanceState(saved).pause().stop().destroy()
        val next = Robolectric.buildActivity(MainActivity::class.java).setup(saved).get()
        assertTrue(next.findViewById<View>(R.id.tab_node).isSelected)
        assertNotNull(next.findViewById<View>(R.id.rows))
    }

    @Test
    fun `notes that the node does not have are on the disk at once`() {
        app.session.mark("bus passed")
        val kept = Preferences(app).notes.load().orEmpty()
        assertTrue("bus passed" in kept, kept)
    }

    @Test
    fun `a decision waits for the node with the run that it is about`() {
        app.session.decide("skip", "velocity-1", trial = 12, attempt = 1, reason = "")
        val kept = Preferences(app).notes.load().orEmpty()
        assertTrue("\"run\":\"velocity-1\"" in kept, kept)
    }

    @Test
    fun `a note has no place when the last fix is old`() {
        app.session.take(Fix(app.nowNs(), 3, latDeg = -26.682, lonDeg = 27.092))
        app.session.mark("here")
        ShadowSystemClock.advanceBy(Duration.ofSeconds(4))
        app.session.mark("elsewhere")
        assertEquals(listOf(-26.682, null), app.session.state.value.track.marks.map { it.latDeg })
    }

    @Test
    fun `pairing takes a line and nothing less, and outlives the process`() {
        val activity = Robolectric.buildActivity(MainActivity::class.java).setup().get()
        val line = activity.findViewById<EditText>(R.id.line)
        line.setText("fieldmesh:127.0.0.1:1#abc")
        activity.findViewById<View>(R.id.pair).performClick()
        assertEquals(View.VISIBLE, activity.findViewById<TextView>(R.id.pair_error).visibility)
        val pairing = Pairing("127.0.0.1", 1, Pin("ab".repeat(32)))
        line.setText(pairing.toString())
        activity.findViewById<View>(R.id.pair).performClick()
        assertEquals(pairing, Preferences(app).pairing)
        activity.findViewById<View>(R.id.unpair).performClick()
        assertEquals(null, Preferences(app).pairing)
    }

    @Test
    fun `the service reads the receiver, tells its loss, and ends by its button`() {
        shadowOf(app).grantPermissions(Manifest.permission.ACCESS_FINE_LOCATION)
        val service = Robolectric.buildService(
            LocationService::class.java,
            Intent(app, LocationService::class.java),
        ).create().startCommand(0, 1)
        shadowOf(app.mainLooper).idle()
        assertNotNull(shadowOf(service.get()).lastForegroundNotification)
        val manager = app.getSystemService(LocationManager::class.java)
        for (mps in listOf(2.8f, 8.3f, 13.9f, 16.7f)) {
            shadowOf(manager).simulateLocation(location(mps))
            shadowOf(app.mainLooper).idle()
            val fix = app.session.fixes.replayCache.last()
            assertEquals(mps.toDouble(), fix.speedMps!!, 0.1)
            assertEquals(SystemClock.elapsedRealtimeNanos(), fix.bootNs)
        }
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(5))
        assertEquals(1, app.session.fixes.replayCache.last().mode, "a receiver that is silent has no fix")
        service.get().onStartCommand(Intent("dev.fieldmesh.STOP"), 0, 2)
        assertTrue(shadowOf(service.get()).isStoppedBySelf)
        service.destroy()
    }

    @Test
    fun `a receiver that was read when the process ended is read again when the app is opened, until it is stopped`() {
        shadowOf(app).grantPermissions(Manifest.permission.ACCESS_FINE_LOCATION)
        val manager = app.getSystemService(LocationManager::class.java)
        shadowOf(manager).setProviderEnabled(LocationManager.GPS_PROVIDER, true)
        val first = Robolectric.buildActivity(MainActivity::class.java).setup()
        assertNull(shadowOf(app).nextStartedService, "nobody has asked for it")
        first.get().findViewById<View>(R.id.tab_node).performClick()
        first.get().findViewById<View>(R.id.gps).performClick()
        assertStartsGps()
        first.pause().stop().destroy()
        app.die()
        val second = Robolectric.buildActivity(MainActivity::class.java).setup()
        assertStartsGps()
        second.pause().stop().destroy()
        val service = Robolectric.buildService(LocationService::class.java).create()
        service.get().onStartCommand(Intent("dev.fieldmesh.STOP"), 0, 1)
        service.destroy()
        Robolectric.buildActivity(MainActivity::class.java).setup()
        assertNull(shadowOf(app).nextStartedService, "it was stopped")
    }

    private fun assertStartsGps() =
        assertEquals(LocationService::class.java.name, shadowOf(app).nextStartedService?.component?.className)

    @Test
    fun `gpspipe reads the speeds of the phone's receiver`() {
        assumeTrue("needs gpspipe (Debian: gpsd-clients)", onPath("gpspipe"))
        shadowOf(app).grantPermissions(Manifest.permission.ACCESS_FINE_LOCATION)
        app.preferences.gpsdServer = true
        val service = Robolectric.buildService(
            LocationService::class.java,
            Intent(app, LocationService::class.java),
        ).create().startCommand(0, 1)
        shadowOf(app.mainLooper).idle()
        val said = File.createTempFile("gpspipe", ".json")
        val pipe = ProcessBuilder(
            "gpspipe",
            "-w",
            "-n",
            "40",
            "127.0.0.1",
        ).redirectErrorStream(true).redirectOutput(said).start()
        val speeds = listOf(2.8f, 8.3f, 13.9f, 16.7f)
        val manager = app.getSystemService(LocationManager::class.java)
        val before = System.nanoTime() + 120_000_000_000
        var n = 0
        while (pipe.isAlive && System.nanoTime() < before) {
            shadowOf(manager).simulateLocation(location(speeds[n++ / 5 % speeds.size]))
            shadowOf(app.mainLooper).idleFor(Duration.ofMillis(100))
            Thread.sleep(20)
        }
        pipe.destroyForcibly()
        service.destroy()
        val text = said.readText()
        said.delete()
        val told = Regex("\"TPV\".*?\"speed\":([0-9.]+)").findAll(text).map { it.groupValues[1].toDouble() }.toList()
        assertTrue(told.size >= 30, text)
        for (mps in speeds) assertTrue(told.any { abs(it - mps) <= 0.1 }, "$mps m/s in $text")
        for (mps in told) assertTrue(speeds.any { abs(it - mps) <= 0.1 }, "$mps m/s was never driven: $text")
    }

    private fun onPath(program: String) = System.getenv("PATH").split(File.pathSeparator).any {
        File(it, program).canExecute()
    }

    @Test
    fun `a log that the phone keeps outlives the process, and is saved whole`() {
        app.session.logging = true
        app.session.take(Fix(1_000_000_000, 3, latDeg = -26.682, lonDeg = 27.092, speedMps = 13.9))
        app.session.heard(WiFiFound(WiFiLook(1_500_000_000, "aa:bb:cc:00:00:01", -61, null, null, 2437), 500_000_000))
        app.session.logging = false
        PhoneLog(app.log.files.single().parentFile!!).apply {
            // as another process finds it
            add(Fix(2_000_000_000, 3, latDeg = -26.682, lonDeg = 27.093))
            end()
        }
        val out = ByteArrayOutputStream()
        val copied = app.log.copyTo(out)
        val records = out.toString().trim().lines().map(Record::decode)
        assertEquals(listOf("gps", "wifi", "gps"), records.map { it.header.kind })
        assertEquals(listOf(1L, 2L, 1L), records.map { it.header.seq })
        assertEquals(2, records.map { it.header.epoch }.distinct().size)
        app.log.delete(copied)
        assertEquals(emptyList(), app.log.files)
    }

    /** Another app's folder of one file, which it opens as Android's own do. */
    class Folder : ContentProvider() {
        override fun openFile(uri: Uri, mode: String): ParcelFileDescriptor = ParcelFileDescriptor.open(
            File(checkNotNull(context).filesDir, "saved"),
            ParcelFileDescriptor.parseMode(mode),
        )

        override fun onCreate() = true

        override fun getType(uri: Uri) = null

        override fun query(u: Uri, p: Array<String>?, s: String?, a: Array<String>?, o: String?) = null

        override fun insert(uri: Uri, values: ContentValues?) = null

        override fun update(uri: Uri, values: ContentValues?, s: String?, a: Array<String>?) = 0

        override fun delete(uri: Uri, s: String?, a: Array<String>?) = 0
    }

    @Test
    fun `a log that is saved over a longer one keeps nothing of it`() {
        Robolectric.setupContentProvider(Folder::class.java, "folder")
        val saved = File(app.filesDir, "saved").apply { writeText("x".repeat(10_000)) }
        app.session.logging = true
        app.session.take(Fix(1_000_000_000, 3, latDeg = -26.682, lonDeg = 27.092))
        app.session.logging = false
        val activity = Robolectric.buildActivity(MainActivity::class.java).setup().get()
        activity.findViewById<View>(R.id.tab_node).performClick()
        activity.findViewById<View>(R.id.save_log).performClick()
        val asked = shadowOf(activity).nextStartedActivityForResult.intent
        shadowOf(activity).receiveResult(asked, RESULT_OK, Intent().setData(Uri.parse("content://folder/saved")))
        val until = System.nanoTime() + 10_000_000_000
        while (questionShown() == null && System.nanoTime() < until) {
            Thread.sleep(10)
            shadowOf(app.mainLooper).idle()
        }
        assertNotNull(questionShown())
        assertEquals(ByteArrayOutputStream().also(app.log::copyTo).toString(), saved.readText())
    }

    @Test
    fun `what is logged after the log was saved is not deleted with it`() {
        app.session.logging = true
        app.session.take(Fix(1_000_000_000, 3, latDeg = -26.682, lonDeg = 27.092))
        val copied = app.log.copyTo(ByteArrayOutputStream())
        app.session.take(Fix(2_000_000_000, 3, latDeg = -26.682, lonDeg = 27.093))
        app.log.delete(copied)
        val out = ByteArrayOutputStream()
        app.log.copyTo(out)
        val record = Record.decode(out.toString().trim().lines().single())
        assertEquals(2_000_000_000, record.header.tBootNs)
    }

    @Test
    fun `a mistyped code is told from a wrong line`() {
        val activity = Robolectric.buildActivity(MainActivity::class.java).setup().get()
        activity.findViewById<View>(R.id.tab_pair).performClick()
        val line = activity.findViewById<EditText>(R.id.line)
        line.setText("FIELDMESH-PAIR/192.168.8.2:7447/AAAA-AAAA")
        activity.findViewById<View>(R.id.pair).performClick()
        assertEquals(
            app.getString(R.string.pair_mistyped),
            activity.findViewById<TextView>(R.id.pair_error).text.toString(),
        )
    }

    private fun location(mps: Float) = Location(LocationManager.GPS_PROVIDER).apply {
        latitude = -26.682
        longitude = 27.092
        accuracy = 3f
        speed = mps
        bearing = 87f
        speedAccuracyMetersPerSecond = 0.3f
        time = 1_767_225_600_000
        elapsedRealtimeNanos = SystemClock.elapsedRealtimeNanos()
    }
}
