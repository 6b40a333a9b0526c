package dev.fieldmesh.device

import android.app.Notification
import android.app.NotificationChannel
import android.app.NotificationManager
import android.app.PendingIntent
import android.app.Service
import android.content.Intent
import android.os.IBinder
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.cancel

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
 * A service that goes on while another app is open. Its notification, of a [channel] of its own, has a button that
 * ends it; [type] is what Android's manifest declares of it.
 */
abstract class ForegroundService(private val channel: String, private val id: Int, private val type: Int) : Service() {
    protected val scope: CoroutineScope = MainScope()

    override fun onBind(intent: Intent?): IBinder? = null

    override fun onDestroy() {
        scope.cancel()
        super.onDestroy()
    }

    /**
     * Ends the service unless it was started again since [startId]; what onStartCommand returns then. A service that
     * ends while Android waits for its notification takes the app with it.
     */
    protected fun end(startId: Int): Int {
        if (stopSelfResult(startId)) stopForeground(STOP_FOREGROUND_REMOVE)
        return START_NOT_STICKY
    }

    /**
     * False when Android does not let it: it starts an ended service again without asking whether the app may be in
     * the foreground (since 12), or still has the permission that the kind of service asks for (since 14).
     */
    protected fun show(words: Wording): Boolean = try {
        enterForeground(notification(words))
        true
    } catch (_: IllegalStateException) { // ForegroundServiceStartNotAllowedException is one
        false
    } catch (_: SecurityException) {
        false
    }

    protected open fun enterForeground(notification: Notification) = startForeground(id, notification, type)

    private fun notification(words: Wording): Notification {
        val manager = getSystemService(NotificationManager::class.java)
        manager.createNotificationChannel(
            NotificationChannel(channel, words.channel, NotificationManager.IMPORTANCE_LOW),
        )
        val open = PendingIntent.getActivity(this, 0, Intent(this, words.opens), PendingIntent.FLAG_IMMUTABLE)
        val stop =
            PendingIntent.getService(this, id, Intent(this, javaClass).setAction(STOP), PendingIntent.FLAG_IMMUTABLE)
        return Notification.Builder(this, channel)
            .setContentTitle(words.title)
            .setContentText(words.text)
            .setSmallIcon(words.icon)
            .setContentIntent(open)
            .setOngoing(true)
            .addAction(Notification.Action.Builder(null, words.stop, stop).build())
            .build()
    }

    protected companion object {
        const val STOP = "dev.fieldmesh.STOP"
    }
}
