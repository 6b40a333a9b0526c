package dev.fieldmesh.core.agent

import dev.fieldmesh.core.wire.WiFi
import dev.fieldmesh.core.wire.WiFiReading
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.conflate
import kotlinx.coroutines.flow.flow

/** What Android said of the phone's Wi-Fi at a look, on the phone's boot clock; null is not known. */
data class WiFiLook(
    val bootNs: Long,
    val peer: String?,
    val signalDbm: Int,
    val txMbps: Int?,
    val rxMbps: Int?,
    val frequencyMhz: Int?,
) {
    /** Android takes these from the radio together. */
    private val values get() = Triple(signalDbm, txMbps, rxMbps)

    fun isSameAs(other: WiFiLook) = values == other.values
}

/** A look that found other values than the one before, [withinNs] earlier. */
data class WiFiFound(val look: WiFiLook, val withinNs: Long) {
    /** For the phone's own log, which has places in it anyway. */
    fun toRecord() = WiFi(
        source = "android",
        peer = look.peer,
        renewedWithinMs = withinNs / NS_OF_MS,
        signalDbm = look.signalDbm.toDouble(),
        txBitrateMbps = look.txMbps?.toDouble(),
        rxBitrateMbps = look.rxMbps?.toDouble(),
        frequencyMhz = look.frequencyMhz,
    )

    /** For the node: without the access point, which tells a place. */
    fun toPush(nowNs: Long) = WiFiReading(
        ageMs = (nowNs - look.bootNs) / NS_OF_MS,
        renewedWithinMs = withinNs / NS_OF_MS,
        signalDbm = look.signalDbm.toDouble(),
        txBitrateMbps = look.txMbps?.toDouble(),
        rxBitrateMbps = look.rxMbps?.toDouble(),
        frequencyMhz = look.frequencyMhz,
    )

    private companion object {
        const val NS_OF_MS = 1e6
    }
}

/**
 * Those looks that found what Android has renewed since the look before; null is a look that found no Wi-Fi. Android
 * renews it about every 3 s with the screen on, and otherwise not at all: the same values again may be as old as the
 * screen is dark, and are left out. So is the first of a Wi-Fi, which may be of a scan.
 */
fun Flow<WiFiLook?>.renewed(): Flow<WiFiFound> = flow {
    var before: WiFiLook? = null
    collect { now ->
        val last = before
        before = now
        if (now == null || last == null || now.isSameAs(last)) return@collect
        val withinNs = now.bootNs - last.bootNs
        if (withinNs in 1..WITHIN_MOST_NS) emit(WiFiFound(now, withinNs))
    }
}

/** Where readings of the Wi-Fi go. */
fun interface WiFiSink {
    suspend fun pushWiFi(reading: WiFiReading)
}

/** Pushes each reading once. One that the node did not take is given up: it will be told the next. */
suspend fun pushWiFi(found: Flow<WiFiFound>, sink: WiFiSink, nowNs: () -> Long) = found.conflate().collect {
    try {
        sink.pushWiFi(it.toPush(nowNs()))
    } catch (_: AgentException) {
        delay(LOST_MS)
    }
}

/** The agent takes no reading whose looks lie farther apart (protocols/wire). */
private const val WITHIN_MOST_NS = 3_000_000_000L
private const val LOST_MS = 500L
