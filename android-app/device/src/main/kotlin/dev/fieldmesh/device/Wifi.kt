package dev.fieldmesh.device

import android.net.wifi.WifiManager
import dev.fieldmesh.core.wire.Station
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow

/** What Android gives for a signal that it does not know, and for an address that it does not tell. */
private const val NO_RSSI = -127
private const val HIDDEN = "02:00:00:00:00:00"
private const val EVERY_MS = 1000L

/** The signal of the cell that the phone is in, once a second; nothing while it is in none. */
// The calls that replace these report networks that Android itself manages only, and from Android 12 on.
@Suppress("DEPRECATION")
fun WifiManager.signals(): Flow<Station> = flow {
    while (true) {
        val info = connectionInfo
        val cell = info?.bssid
        if (cell != null && cell != HIDDEN && info.rssi > NO_RSSI) {
            emit(
                Station(
                    peer = cell,
                    signalDbm = info.rssi.toDouble(),
                    txBitrateMbps = info.linkSpeed.takeIf {
                        it > 0
                    }?.toDouble(),
                ),
            )
        }
        delay(EVERY_MS)
    }
}
