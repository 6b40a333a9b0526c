package dev.fieldmesh.device

import android.annotation.SuppressLint
import android.graphics.ImageFormat
import android.hardware.camera2.CameraAccessException
import android.hardware.camera2.CameraCaptureSession
import android.hardware.camera2.CameraCharacteristics
import android.hardware.camera2.CameraDevice
import android.hardware.camera2.CameraManager
import android.hardware.camera2.CaptureRequest
import android.media.Image
import android.media.ImageReader
import android.os.Handler
import android.os.Looper
import android.util.Size
import dev.fieldmesh.core.scan.GrayPicture
import kotlinx.coroutines.channels.ProducerScope
import kotlinx.coroutines.channels.awaitClose
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.callbackFlow
import kotlinx.coroutines.flow.conflate
import java.io.IOException

/** A picture of the camera, and by how much it is to be turned clockwise to stand upright on the screen. */
class Shot(val picture: GrayPicture, val turnDeg: Int)

/** The camera cannot be used, or not any more. */
class CameraException(cause: Throwable?) :
    IOException("use the camera: ${cause?.message ?: "another app has taken it"}", cause)

/** Where pictures come from. */
fun interface Pictures {
    /**
     * What the camera sees for as long as it is collected, the newest only; [screenDeg] is how the screen is
     * turned. Fails with [CameraException].
     */
    fun shots(screenDeg: Int): Flow<Shot>
}

/**
 * The camera that looks away from the person. The caller holds the camera
 * permission; all calls and callbacks are the main thread's.
 */
class BackCamera(private val manager: CameraManager, private val looper: Looper = Looper.getMainLooper()) : Pictures {
    override fun shots(screenDeg: Int): Flow<Shot> = callbackFlow {
        var use: CameraUse? = null
        try {
            CameraUse(this, manager, back(), screenDeg, Handler(looper)).also { use = it }.open()
        } catch (e: CameraAccessException) {
            close(CameraException(e))
        } catch (e: SecurityException) {
            close(CameraException(e))
        } catch (e: IllegalArgumentException) {
            close(CameraException(e)) // it was taken out a moment ago
        }
        awaitClose { use?.close() }
    }.conflate()

    private fun back(): String {
        val ids = manager.cameraIdList
        return ids.firstOrNull {
            manager.getCameraCharacteristics(it)[CameraCharacteristics.LENS_FACING] ==
                CameraCharacteristics.LENS_FACING_BACK
        }
            ?: ids.firstOrNull() ?: throw CameraException(IOException("there is none"))
    }
}

/** One use of a camera, from opening to closing. */
private class CameraUse(
    private val out: ProducerScope<Shot>,
    private val manager: CameraManager,
    private val id: String,
    screenDeg: Int,
    private val handler: Handler,
) : CameraDevice.StateCallback() {
    private val what = manager.getCameraCharacteristics(id)
    private val turnDeg = ((what[CameraCharacteristics.SENSOR_ORIENTATION] ?: 0) - screenDeg + 360) % 360
    private val size =
        sizeOf(
            what[CameraCharacteristics.SCALER_STREAM_CONFIGURATION_MAP]?.getOutputSizes(
                ImageFormat.YUV_420_888,
            ).orEmpty(),
        )
    private val reader = ImageReader.newInstance(size.width, size.height, ImageFormat.YUV_420_888, 2)
    private var device: CameraDevice? = null
    private var closed = false

    @SuppressLint("MissingPermission")
    fun open() {
        reader.setOnImageAvailableListener({ it.acquireLatestImage()?.use(::give) }, handler)
        manager.openCamera(id, this, handler)
    }

    fun close() {
        closed = true
        device?.close()
        reader.close()
    }

    private fun give(image: Image) {
        val bright = image.planes.first()
        out.trySend(Shot(GrayPicture.of(bright.buffer, image.width, image.height, bright.rowStride), turnDeg))
    }

    override fun onOpened(camera: CameraDevice) {
        if (closed) return camera.close()
        device = camera
        try {
            @Suppress("DEPRECATION") // what replaces it is not in the list of calls that pom.xml names
            camera.createCaptureSession(listOf(reader.surface), session, handler)
        } catch (e: CameraAccessException) {
            fail(e)
        }
    }

    private val session = object : CameraCaptureSession.StateCallback() {
        override fun onConfigured(session: CameraCaptureSession) {
            if (closed) return
            try {
                session.setRepeatingRequest(request(session.device), null, handler)
            } catch (e: CameraAccessException) {
                fail(e)
            }
        }

        override fun onConfigureFailed(session: CameraCaptureSession) = fail(null)
    }

    private fun request(camera: CameraDevice) = camera.createCaptureRequest(CameraDevice.TEMPLATE_PREVIEW).apply {
        addTarget(reader.surface)
        val sharp = CaptureRequest.CONTROL_AF_MODE_CONTINUOUS_PICTURE
        if (what[CameraCharacteristics.CONTROL_AF_AVAILABLE_MODES]?.contains(sharp) ==
            true
        ) {
            set(CaptureRequest.CONTROL_AF_MODE, sharp)
        }
    }.build()

    override fun onDisconnected(camera: CameraDevice) = fail(null)

    override fun onError(camera: CameraDevice, error: Int) = fail(IOException("error $error"))

    private fun fail(cause: Throwable?) {
        out.close(CameraException(cause))
    }
}

/** The smallest that shows a code of 50 modules well; more only takes longer to read. */
internal fun sizeOf(offered: Array<out Size>): Size =
    offered.filter { minOf(it.width, it.height) >= LEAST_PIXELS }.minByOrNull { it.width * it.height }
        ?: offered.maxByOrNull { it.width * it.height } ?: Size(LEAST_PIXELS * 4 / 3, LEAST_PIXELS)

private const val LEAST_PIXELS = 720
