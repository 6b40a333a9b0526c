package dev.fieldmesh.app

import android.Manifest
import android.content.pm.PackageManager
import android.view.View
import android.widget.TextView
import com.google.zxing.BarcodeFormat
import com.google.zxing.qrcode.QRCodeWriter
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.scan.GrayPicture
import dev.fieldmesh.device.CameraException
import dev.fieldmesh.device.Preferences
import dev.fieldmesh.device.Shot
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOf
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.android.controller.ActivityController
import org.robolectric.annotation.Config
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull

/** A code in a picture of 640 by 480 as a sensor gives it that is turned so. */
fun shotOf(text: String, turnDeg: Int = 0): Shot {
    val code = QRCodeWriter().encode(text, BarcodeFormat.QR_CODE, 440, 440)
    val pixels = ByteArray(640 * 480) { i ->
        val x = i % 640 - 100
        val y = i / 640 - 20
        if (x in 0 until 440 && y in 0 until 440 && code[x, y]) 20 else 200.toByte()
    }
    return Shot(GrayPicture(pixels, 640, 480), turnDeg)
}

/** Pairing by the phone's camera, from the button on. */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class ScanTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp
    private val pairing = Pairing("127.0.0.1", 1, Pin("ab".repeat(32)))
    private lateinit var controller: ActivityController<MainActivity>

    @Before
    fun open() {
        shadowOf(app.packageManager).setSystemFeature(PackageManager.FEATURE_CAMERA_ANY, true)
        controller = Robolectric.buildActivity(MainActivity::class.java).setup()
    }

    private fun press(id: Int) {
        controller.get().findViewById<View>(id).performClick()
        shadowOf(app.mainLooper).idle()
    }

    @Test
    fun `the code that the camera sees pairs, and others do not`() {
        shadowOf(app).grantPermissions(Manifest.permission.CAMERA)
        app.seen = flowOf(shotOf("https://example.org"), shotOf(pairing.toString(), turnDeg = 90))
        press(R.id.scan)
        assertEquals(pairing, Preferences(app).pairing)
        assertNotNull(controller.get().findViewById(R.id.line), "the Pair screen is back")
    }

    @Test
    fun `another code is told, and looking goes on`() {
        shadowOf(app).grantPermissions(Manifest.permission.CAMERA)
        app.seen = flow {
            emit(shotOf("https://example.org"))
            awaitCancellation()
        }
        press(R.id.scan)
        assertEquals(
            app.getString(R.string.scan_other),
            controller.get().findViewById<TextView>(R.id.scan_hint).text.toString(),
        )
        assertNull(Preferences(app).pairing)
    }

    @Test
    fun `the camera is asked for only here, and without it the code is typed`() {
        assertNull(shadowOf(controller.get()).lastRequestedPermission)
        press(R.id.scan)
        assertContains(
            shadowOf(controller.get()).lastRequestedPermission.requestedPermissions,
            Manifest.permission.CAMERA,
        )
        controller.get().onRequestPermissionsResult(
            2,
            arrayOf(Manifest.permission.CAMERA),
            intArrayOf(PackageManager.PERMISSION_DENIED),
        )
        assertNotNull(controller.get().findViewById(R.id.line))
        controller.get().onRequestPermissionsResult(
            2,
            arrayOf(Manifest.permission.CAMERA),
            intArrayOf(PackageManager.PERMISSION_GRANTED),
        )
        assertNotNull(controller.get().findViewById(R.id.preview))
        press(R.id.scan_type)
        assertNotNull(controller.get().findViewById(R.id.line))
    }

    @Test
    fun `the camera is used while its screen is seen, and no longer`() {
        var used = 0
        app.seen = flow {
            used++
            try {
                awaitCancellation()
            } finally {
                used--
            }
        }
        shadowOf(app).grantPermissions(Manifest.permission.CAMERA)
        press(R.id.scan)
        assertEquals(1, used)
        controller.pause().stop()
        shadowOf(app.mainLooper).idle()
        assertEquals(0, used, "away")
        controller.start().resume()
        shadowOf(app.mainLooper).idle()
        assertEquals(1, used, "back")
        RuntimeEnvironment.setQualifiers("+land")
        controller.recreate()
        shadowOf(app.mainLooper).idle()
        assertEquals(1, used, "turned")
        assertNotNull(controller.get().findViewById(R.id.preview))
        @Suppress("DEPRECATION")
        controller.get().onBackPressed()
        shadowOf(app.mainLooper).idle()
        assertEquals(0, used, "left")
        assertNotNull(controller.get().findViewById(R.id.line))
    }

    @Test
    fun `a camera that fails is told`() {
        shadowOf(app).grantPermissions(Manifest.permission.CAMERA)
        app.seen = flow { throw CameraException(null) }
        press(R.id.scan)
        assertEquals(
            app.getString(R.string.scan_failed),
            controller.get().findViewById<TextView>(R.id.scan_hint).text.toString(),
        )
    }
}
