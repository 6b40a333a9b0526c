package dev.fieldmesh.device

import android.app.Notification
import android.app.NotificationChannel
import android.app.NotificationManager
import android.app.PendingIntent
import android.app.Service
import android.content.Context
import android.content.Intent
import android.content.pm.ServiceInfo
import android.location.LocationManager
import android.net.wifi.WifiManager
import android.os.IBinder
import dev.fieldmesh.core.gps.GpsdServer
import dev.fieldmesh.core.gps.withGaps
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.cancel
import kotlinx.coroutines.launch
import java.io.IOException

/** What the service needs of the application; the Application object provides it. */
interface LocationHost {
    val session: Session
    val preferences: Preferences
    val nowNs: () -> Long
    val wording: Wording

    /** The receiver is read, or is not any more. */
    fun receiving(on: Boolean)
}

/** The texts and the picture of the notification, and where a touch on it leads. */
class Wording(
    val channel: String,
    val title: String,
    val text: String,
    val stop: String,
    val icon: Int,
    val opens: Class<*>,
)

/**
 * Reads the receiver as long as a person wants it: with the screen off, in Doze
 * and after the app has been swiped away. Its notification has a button that
 * ends it.
 */
open class LocationService : Service() {
    private val scope: CoroutineScope = MainScope()
    private var reading: Job? = null

    override fun onBind(intent: Intent?): IBinder? = null

    override fun onStartCommand(intent: Intent?, flags: Int, startId: Int): Int {
        val host = application as LocationHost
        if (intent?.action == STOP) {
            host.preferences.gpsWanted = false
            stopForeground(STOP_FOREGROUND_REMOVE)
            stopSelf()
            return START_NOT_STICKY
        }
        if (!show(notification(host.wording))) {
            stopSelf()
            return START_NOT_STICKY
        }
        if (reading == null) reading = scope.launch { read(host) }
        host.receiving(true)
        return START_STICKY
    }

    override fun onDestroy() {
        (application as LocationHost).receiving(false)
        scope.cancel()
        super.onDestroy()
    }

    private suspend fun read(host: LocationHost) {
        if (host.preferences.gpsdServer) scope.launch { serveGpsd(host) }
        scope.launch { getSystemService(WifiManager::class.java)?.signals()?.collect(host.session::heard) }
        val receiver = getSystemService(LocationManager::class.java)
        try {
            receiver.fixes(mainLooper).withGaps(host.nowNs).collect(host.session::take)
        } catch (_: SecurityException) {
            stopSelf() // the permission was taken away
        }
    }

    private suspend fun serveGpsd(host: LocationHost) = try {
        GpsdServer(host.session.fixes, Dispatchers.IO).use { it.run() }
    } catch (_: IOException) {
        // Another gpsd has the port; its clients are served already.
    }

    /**
     * False when Android does not let it: it starts an ended service again without asking whether the app may be in
     * the foreground (since 12), or still has the permission that the kind of service asks for (since 14).
     */
    private fun show(notification: Notification): Boolean = try {
        enterForeground(notification)
        true
    } catch (_: IllegalStateException) { // ForegroundServiceStartNotAllowedException is one
        false
    } catch (_: SecurityException) {
        false
    }

    protected open fun enterForeground(notification: Notification) {
        startForeground(NOTIFICATION, notification, ServiceInfo.FOREGROUND_SERVICE_TYPE_LOCATION)
    }

    private fun notification(words: Wording): Notification {
        val manager = getSystemService(NotificationManager::class.java)
        manager.createNotificationChannel(
            NotificationChannel(CHANNEL, words.channel, NotificationManager.IMPORTANCE_LOW),
        )
        val open = PendingIntent.getActivity(this, 0, Intent(this, words.opens), PendingIntent.FLAG_IMMUTABLE)
        val stop = PendingIntent.getService(this, 1, intent(this).setAction(STOP), PendingIntent.FLAG_IMMUTABLE)
        return Notification.Builder(this, CHANNEL)
            .setContentTitle(words.title)
            .setContentText(words.text)
            .setSmallIcon(words.icon)
            .setContentIntent(open)
            .setOngoing(true)
            .addAction(Notification.Action.Builder(null, words.stop, stop).build())
            .build()
    }

    companion object {
        private const val CHANNEL = "location"
        private const val NOTIFICATION = 1
        private const val STOP = "dev.fieldmesh.STOP"

        fun intent(context: Context) = Intent(context, LocationService::class.java)
    }
}
