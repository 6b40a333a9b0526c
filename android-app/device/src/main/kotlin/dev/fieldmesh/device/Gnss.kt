package dev.fieldmesh.device

import android.annotation.SuppressLint
import android.location.GnssStatus
import android.location.Location
import android.location.LocationListener
import android.location.LocationManager
import android.os.Handler
import android.os.Looper
import dev.fieldmesh.core.gps.Fix
import kotlinx.coroutines.channels.awaitClose
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.buffer
import kotlinx.coroutines.flow.callbackFlow

/**
 * The phone's GNSS receiver at the rate that it has, raw. The caller holds the
 * location permission; without it the flow fails with SecurityException.
 */
@SuppressLint("MissingPermission")
fun LocationManager.fixes(looper: Looper): Flow<Fix> = callbackFlow {
    var used: Int? = null
    val satellites = object : GnssStatus.Callback() {
        override fun onSatelliteStatusChanged(status: GnssStatus) {
            used = (0 until status.satelliteCount).count(status::usedInFix)
        }
    }
    val listener = object : LocationListener {
        override fun onLocationChanged(location: Location) {
            trySend(location.toFix(used))
        }

        // Android 10 calls it, and ends the app when it is not there.
        override fun onProviderEnabled(provider: String) = Unit

        override fun onProviderDisabled(provider: String) {
            used = null
        }
    }
    registerGnssStatusCallback(satellites, Handler(looper))
    requestLocationUpdates(LocationManager.GPS_PROVIDER, 0L, 0f, listener, looper)
    awaitClose {
        removeUpdates(listener)
        unregisterGnssStatusCallback(satellites)
    }
}.buffer(FIXES_KEPT)

/** Far more than come while a collector is held up. */
private const val FIXES_KEPT = 256

/** What Android does not know is absent; accuracies are of 68 %, as Android tells them. */
fun Location.toFix(satellitesUsed: Int?) = Fix(
    bootNs = elapsedRealtimeNanos,
    mode = if (hasAltitude()) 3 else 2,
    utcMs = time.takeIf { it > 0 },
    latDeg = latitude,
    lonDeg = longitude,
    altHaeM = if (hasAltitude()) altitude else null,
    speedMps = if (hasSpeed()) speed.toDouble() else null,
    trackDeg = if (hasBearing()) bearing.toDouble() else null,
    speedErrMps = if (hasSpeedAccuracy()) speedAccuracyMetersPerSecond.toDouble() else null,
    horizErrM = if (hasAccuracy()) accuracy.toDouble() else null,
    satellitesUsed = satellitesUsed,
)
