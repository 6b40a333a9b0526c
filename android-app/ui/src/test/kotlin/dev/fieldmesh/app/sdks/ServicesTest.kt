package dev.fieldmesh.app.sdks

import android.Manifest
import android.app.NotificationManager
import android.app.Service
import android.content.DialogInterface
import android.content.pm.PackageManager
import android.location.LocationManager
import android.os.Build
import android.provider.Settings
import android.view.View
import dev.fieldmesh.app.Fieldmesh
import dev.fieldmesh.app.MainActivity
import dev.fieldmesh.app.R
import dev.fieldmesh.device.LocationService
import dev.fieldmesh.device.NodeService
import dev.fieldmesh.device.RunService
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowAlertDialog
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** What the app asks of Android, which has changed from version to version. */
@RunWith(RobolectricTestRunner::class)
@Config(application = FlowTest.App::class, qualifiers = "w411dp-h891dp-port-420dpi")
class ServicesTest {
    private val app get() = RuntimeEnvironment.getApplication() as Fieldmesh
    private val activity by lazy { Robolectric.buildActivity(MainActivity::class.java).setup().get() }

    @Before
    fun receive() = shadowOf(app.getSystemService(LocationManager::class.java))
        .setProviderEnabled(LocationManager.GPS_PROVIDER, true)

    private fun idle() = shadowOf(app.mainLooper).idle()

    @Test
    fun `each service is started again with the process, shows itself, and ends by the button that it shows`() {
        shadowOf(app).grantPermissions(Manifest.permission.ACCESS_FINE_LOCATION)
        app.preferences.nodeWanted = true
        for ((kind, title) in mapOf<Class<out Service>, Int>(
            LocationService::class.java to R.string.notification_title,
            RunService::class.java to R.string.run_title,
            NodeService::class.java to R.string.own_title,
        )) {
            val service = Robolectric.buildService(kind).create()
            assertEquals(Service.START_STICKY, service.get().onStartCommand(null, 0, 1), "$kind")
            idle()
            val shown = shadowOf(service.get()).lastForegroundNotification
            assertEquals(app.getString(title), shown.extras.getString("android.title"))
            val channel = app.getSystemService(NotificationManager::class.java).getNotificationChannel(shown.channelId)
            assertEquals(NotificationManager.IMPORTANCE_LOW, channel.importance)
            assertTrue(shadowOf(shown.contentIntent).isActivity)
            val button = shown.actions.single()
            assertEquals(app.getString(R.string.notification_stop), button.title)
            service.get().onStartCommand(shadowOf(button.actionIntent).savedIntent, 0, 2)
            assertTrue(shadowOf(service.get()).isStoppedBySelf, "$kind")
            service.destroy()
        }
    }

    private fun askForGps(): Array<String> {
        activity.findViewById<View>(R.id.tab_node).performClick()
        activity.findViewById<View>(R.id.gps).performClick()
        return shadowOf(activity).lastRequestedPermission.requestedPermissions
    }

    private fun answer(asked: Array<String>, result: Int) = activity.onRequestPermissionsResult(
        shadowOf(activity).lastRequestedPermission.requestCode,
        asked,
        IntArray(asked.size) { result },
    )

    @Test
    fun `notifications are asked for where Android keeps them back, and the receiver is read once it is granted`() {
        val asked = askForGps()
        val notify = Manifest.permission.POST_NOTIFICATIONS in asked
        assertEquals(Build.VERSION.SDK_INT >= Build.VERSION_CODES.TIRAMISU, notify)
        answer(asked, PackageManager.PERMISSION_GRANTED)
        assertEquals(LocationService::class.java.name, shadowOf(app).nextStartedService.component?.className)
    }

    @Test
    fun `who is denied the location is led to where it is given`() {
        answer(askForGps(), PackageManager.PERMISSION_DENIED)
        assertNull(shadowOf(app).nextStartedService)
        ShadowAlertDialog.getLatestAlertDialog().getButton(DialogInterface.BUTTON_POSITIVE).performClick()
        idle()
        val led = shadowOf(activity).nextStartedActivity.action
        assertEquals(Settings.ACTION_APPLICATION_DETAILS_SETTINGS, led)
    }

    @Test
    fun `an app that is closed and opened again shows its screen`() {
        val first = Robolectric.buildActivity(MainActivity::class.java).setup()
        first.get().findViewById<View>(R.id.tab_track).performClick()
        first.recreate()
        assertTrue(first.get().findViewById<View>(R.id.tab_track).isSelected)
        first.pause().stop().destroy()
        assertFalse(activity.findViewById<View>(R.id.tab_track).isSelected)
    }
}
