package dev.fieldmesh.device

import android.annotation.TargetApi
import android.net.wifi.WifiInfo
import android.net.wifi.WifiManager
import android.os.Build
import dev.fieldmesh.core.agent.WiFiFound
import dev.fieldmesh.core.agent.WiFiLook
import dev.fieldmesh.core.agent.renewed
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow

/** What Android gives for a signal that it does not know, and for an address that it does not tell. */
private const val NO_RSSI = -127
private const val HIDDEN = "02:00:00:00:00:00"
private const val EVERY_MS = 500L

/** The Wi-Fi that the phone is in, each time that Android has renewed what it knows of it. */
fun WifiManager.signals(nowNs: () -> Long): Flow<WiFiFound> = flow {
    while (true) {
        emit(look(nowNs()))
        delay(EVERY_MS)
    }
}.renewed()

// NetworkCapabilities have the same WifiInfo, from Android 12 on; but Android hands them out only when the signal
// crosses a level of its status bar or the bandwidth changes much, not when it has renewed them.
@Suppress("DEPRECATION")
@TargetApi(Build.VERSION_CODES.Q) // the least that the app is installed on
private fun WifiManager.look(nowNs: Long): WiFiLook? = connectionInfo?.takeIf { it.rssi > NO_RSSI }?.let {
    WiFiLook(
        bootNs = nowNs,
        peer = it.bssid?.takeUnless { cell -> cell == HIDDEN },
        signalDbm = it.rssi,
        txMbps = it.txLinkSpeedMbps.takeIf(::isKnown),
        rxMbps = it.rxLinkSpeedMbps.takeIf(::isKnown),
        frequencyMhz = it.frequency.takeIf(::isKnown),
    )
}

/** [WifiInfo.LINK_SPEED_UNKNOWN] is below it. */
private fun isKnown(value: Int) = value > 0
