package dev.fieldmesh.core.gps

import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonObjectBuilder
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.addJsonObject
import kotlinx.serialization.json.booleanOrNull
import kotlinx.serialization.json.buildJsonObject
import kotlinx.serialization.json.put
import kotlinx.serialization.json.putJsonArray

/** The words of gpsd's protocol. */
internal object GpsdText {
    private const val DEVICE = "android"

    fun version(): String = text("VERSION") {
        put("release", "3.22") // whose protocol this is
        put("rev", "fieldmesh")
        put("proto_major", 3)
        put("proto_minor", 14)
    }

    private fun devices(): String = text("DEVICES") {
        putJsonArray("devices") {
            addJsonObject {
                put("class", "DEVICE")
                put("path", DEVICE)
                put("driver", "Android")
            }
        }
    }

    fun tpv(fix: Fix): String = text("TPV") {
        put("device", DEVICE)
        putTpv(fix)
    }

    private fun JsonObjectBuilder.putTpv(fix: Fix) {
        put("mode", if (fix.hasPosition) fix.mode else 1)
        fix.utcMs?.let { put("time", utcText(it)) }
        if (!fix.hasPosition) return
        put("lat", fix.latDeg)
        put("lon", fix.lonDeg)
        fix.altHaeM?.let { put("altHAE", it) }
        fix.horizErrM?.let { put("eph", it) }
        fix.trackDeg?.let { put("track", it) }
        fix.speedMps?.let { put("speed", it) }
        fix.speedErrMps?.let { put("eps", it) }
    }

    fun sky(fix: Fix): String? = fix.satellitesUsed?.let { used ->
        text("SKY") {
            put("device", DEVICE)
            put("uSat", used)
        }
    }

    /** What a WATCH asks for; null for anything else. */
    fun watch(request: String): Boolean? {
        if (!request.startsWith("?WATCH")) return null
        val asked = arguments(request) ?: return null
        return (asked["enable"] as? JsonPrimitive)?.booleanOrNull ?: true
    }

    fun answer(request: String, newest: Fix?): List<String> = when (request.substringBefore('=').trim()) {
        "?VERSION" -> listOf(version())
        "?DEVICES" -> listOf(devices())
        "?WATCH" -> if (request == "?WATCH" ||
            watch(request) != null
        ) {
            listOf(devices(), watchText(watch(request) ?: false))
        } else {
            listOf(error(request))
        }
        "?POLL" -> listOf(poll(newest))
        else -> listOf(error(request))
    }

    private fun watchText(enable: Boolean): String = text("WATCH") {
        put("enable", enable)
        put("json", enable)
        put("nmea", false)
        put("raw", 0)
        put("scaled", false)
        put("timing", false)
        put("split24", false)
        put("pps", false)
    }

    private fun poll(newest: Fix?): String = text("POLL") {
        put("active", if (newest == null) 0 else 1)
        putJsonArray("tpv") {
            newest?.let { fix ->
                addJsonObject {
                    put("class", "TPV")
                    put("device", DEVICE)
                    putTpv(fix)
                }
            }
        }
        putJsonArray("sky") {}
    }

    private fun error(request: String): String = text("ERROR") {
        put("message", "Unrecognized request '${request.take(80).filter { it in ' '..'~' }}'")
    }

    private fun arguments(request: String): JsonObject? {
        if ('=' !in request) return JsonObject(emptyMap()).takeIf { request != "?WATCH" }
        return try {
            Json.parseToJsonElement(request.substringAfter('=')) as? JsonObject
        } catch (_: SerializationException) {
            null
        }
    }

    private inline fun text(kind: String, crossinline fill: JsonObjectBuilder.() -> Unit): String = buildJsonObject {
        put("class", kind)
        fill()
    }.toString()
}
