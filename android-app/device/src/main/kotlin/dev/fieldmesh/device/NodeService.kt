package dev.fieldmesh.device

import android.content.Context
import android.content.Intent
import android.content.pm.ServiceInfo
import android.net.wifi.WifiManager
import android.os.Build
import android.os.PowerManager
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch

/** What the service needs of the application; the Application object provides it. */
interface NodeHost {
    val preferences: Preferences
    val nodeWording: Wording

    /** Is this phone's node until it is cancelled. */
    suspend fun beNode()
}

/**
 * Makes this phone a node for as long as a person wants it, also while another app is open. Its notification has a
 * button that ends it.
 */
open class NodeService : ForegroundService("node", 3, ServiceInfo.FOREGROUND_SERVICE_TYPE_CONNECTED_DEVICE) {
    private var being: Job? = null

    override fun onStartCommand(intent: Intent?, flags: Int, startId: Int): Int {
        val host = application as NodeHost
        if (intent?.action == STOP) {
            host.preferences.nodeWanted = false
        } else if (!show(host.nodeWording)) {
            return end(startId)
        }
        if (!host.preferences.nodeWanted) return end(startId)
        if (being == null) being = scope.launch { awake(host::beNode) }
        return START_STICKY
    }

    /**
     * A node answers its controller at any time, so its processor never sleeps. Nor does its radio, as far as Android
     * lets an app have that.
     */
    private suspend fun awake(work: suspend () -> Unit) {
        val processor = getSystemService(PowerManager::class.java).newWakeLock(PowerManager.PARTIAL_WAKE_LOCK, LOCK)
        val radio = getSystemService(WifiManager::class.java)
            ?.createWifiLock(radioMode(), LOCK)
        processor.acquire()
        radio?.acquire()
        try {
            work()
        } finally {
            radio?.release()
            processor.release()
        }
    }

    /** From Android 14 on there is only the mode that acts while the screen is on and the app in front. */
    @Suppress("DEPRECATION")
    private fun radioMode() = if (Build.VERSION.SDK_INT < Build.VERSION_CODES.UPSIDE_DOWN_CAKE) {
        WifiManager.WIFI_MODE_FULL_HIGH_PERF
    } else {
        WifiManager.WIFI_MODE_FULL_LOW_LATENCY
    }

    companion object {
        private const val LOCK = "fieldmesh:node"

        fun intent(context: Context) = Intent(context, NodeService::class.java)

        /** What ends it, also when it has only been asked to start: Android ends an app that stops it before that. */
        fun end(context: Context): Intent = intent(context).setAction(STOP)
    }
}
