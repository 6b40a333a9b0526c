package dev.fieldmesh.device

import android.content.Context
import android.content.Intent
import android.content.pm.ServiceInfo
import android.location.LocationManager
import android.net.wifi.WifiManager
import dev.fieldmesh.core.gps.GpsdServer
import dev.fieldmesh.core.gps.withGaps
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
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

/**
 * Reads the receiver as long as a person wants it: with the screen off, in Doze
 * and after the app has been swiped away. Its notification has a button that
 * ends it.
 */
open class LocationService : ForegroundService("location", 1, ServiceInfo.FOREGROUND_SERVICE_TYPE_LOCATION) {
    private var reading: Job? = null

    override fun onStartCommand(intent: Intent?, flags: Int, startId: Int): Int {
        val host = application as LocationHost
        if (intent?.action == STOP) {
            host.preferences.gpsWanted = false
            return end(startId)
        }
        if (!show(host.wording)) return end(startId)
        if (reading == null) reading = scope.launch { read(host) }
        host.receiving(true)
        return START_STICKY
    }

    override fun onDestroy() {
        (application as LocationHost).receiving(false)
        super.onDestroy()
    }

    private suspend fun read(host: LocationHost) {
        if (host.preferences.gpsdServer) scope.launch { serveGpsd(host) }
        scope.launch { getSystemService(WifiManager::class.java)?.signals(host.nowNs)?.collect(host.session::heard) }
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

    companion object {
        fun intent(context: Context) = Intent(context, LocationService::class.java)
    }
}
