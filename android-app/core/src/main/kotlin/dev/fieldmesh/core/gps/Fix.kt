package dev.fieldmesh.core.gps

import dev.fieldmesh.core.wire.Gps
import dev.fieldmesh.core.wire.PushedFix
import java.time.Instant
import java.time.format.DateTimeFormatterBuilder

/**
 * What a receiver said at one moment. [bootNs] is the phone's boot clock,
 * which runs on in Doze. Without a position, [mode] is 1 and the rest is absent.
 * The height is above the ellipsoid, as Android tells it; records have heights
 * above the sea, so it is left out of them.
 */
data class Fix(
    val bootNs: Long,
    val mode: Int,
    val utcMs: Long? = null,
    val latDeg: Double? = null,
    val lonDeg: Double? = null,
    val altHaeM: Double? = null,
    val speedMps: Double? = null,
    val trackDeg: Double? = null,
    val speedErrMps: Double? = null,
    val horizErrM: Double? = null,
    val satellitesUsed: Int? = null,
) {
    val hasPosition get() = mode >= 2 && latDeg != null && lonDeg != null

    /** As a record has it: the node's own line of a log. */
    fun toGps() = Gps(
        mode = mode,
        fixAgeMs = if (hasPosition) 0.0 else null,
        fixBootNs = if (hasPosition) bootNs else null,
        timeUtc = utcMs?.let(::utcText),
        latDeg = latDeg,
        lonDeg = lonDeg,
        speedMps = speedMps,
        trackDeg = trackDeg,
        speedErrMps = speedErrMps,
        horizErrM = horizErrM,
        satellitesUsed = satellitesUsed,
        connected = true,
    )

    /** As the agent takes it, with its age now. */
    fun toPush(nowBootNs: Long) = PushedFix(
        ageMs = (nowBootNs - bootNs).coerceAtLeast(0) / 1e6,
        mode = mode,
        timeUtc = utcMs?.let(::utcText),
        latDeg = latDeg,
        lonDeg = lonDeg,
        speedMps = speedMps,
        trackDeg = trackDeg,
        speedErrMps = speedErrMps,
        horizErrM = horizErrM,
        satellitesUsed = satellitesUsed,
    )

    companion object {
        fun none(bootNs: Long) = Fix(bootNs, mode = 1)
    }
}

private val UTC = DateTimeFormatterBuilder().appendInstant(3).toFormatter()

/** ISO 8601 with milliseconds, as gpsd writes it. */
fun utcText(ms: Long): String = UTC.format(Instant.ofEpochMilli(ms))
